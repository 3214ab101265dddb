package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// TestOrder: files of one second are in the order of their names, by which they are read.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	var made []string
	for range 12 {
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, filepath.Base(w.f.Name()))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSorted(made) {
		t.Errorf("files of one second are not in the order of their names: %q", made)
	}
}

// schema describes the messages of event files by the names and numbers of their
// fields, independently of the writer.
const schema = `
name: "event.proto" package: "tensorflow" syntax: "proto3"
message_type {
  name: "Event"
  field { name: "wall_time" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "step" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "file_version" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "summary" number: 5 type: TYPE_MESSAGE type_name: ".tensorflow.Summary" label: LABEL_OPTIONAL }
  field { name: "session_log" number: 7 type: TYPE_MESSAGE type_name: ".tensorflow.SessionLog" label: LABEL_OPTIONAL }
}
message_type {
  name: "Summary"
  field { name: "value" number: 1 type: TYPE_MESSAGE type_name: ".tensorflow.Summary.Value" label: LABEL_REPEATED }
  nested_type {
    name: "Value"
    field { name: "tag" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "simple_value" number: 2 type: TYPE_FLOAT label: LABEL_OPTIONAL }
  }
}
message_type {
  name: "SessionLog"
  field { name: "status" number: 1 type: TYPE_ENUM type_name: ".tensorflow.SessionLog.SessionStatus" label: LABEL_OPTIONAL }
  enum_type {
    name: "SessionStatus"
    value { name: "STATUS_UNSPECIFIED" number: 0 }
    value { name: "START" number: 1 }
  }
}`

// eventType returns the message type Event.
func eventType(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	file := new(descriptorpb.FileDescriptorProto)
	if err := prototext.Unmarshal([]byte(schema), file); err != nil {
		t.Fatal(err)
	}
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.Messages().ByName("Event")
}

// read returns the events of a file; a checksum that is wrong fails the test.
func read(t *testing.T, path string) (events []*dynamicpb.Message) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(data []byte, want uint32) {
		c := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		if want -= 0xa282ead8; want>>17|want<<15 != c {
			t.Fatalf("checksum %#x, want %#x", want, c)
		}
	}
	kind := eventType(t)
	for len(data) > 0 {
		n := binary.LittleEndian.Uint64(data)
		check(data[:8], binary.LittleEndian.Uint32(data[8:]))
		check(data[12:12+n], binary.LittleEndian.Uint32(data[12+n:]))
		e := dynamicpb.NewMessage(kind)
		if err := (proto.UnmarshalOptions{}).Unmarshal(data[12:12+n], e); err != nil {
			t.Fatal(err)
		}
		if len(e.GetUnknown()) > 0 {
			t.Errorf("unknown fields %x", e.GetUnknown())
		}
		events = append(events, e)
		data = data[16+n:]
	}
	return events
}

func field(m protoreflect.Message, name string) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
}

// curves plays files in the order of their names as TensorBoard does: a session that
// starts at a step removes the points from there on.
func curves(t *testing.T, dir string) map[string][][2]float64 {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	out := map[string][][2]float64{}
	for _, name := range names {
		for i, e := range read(t, name) {
			step := float64(field(e, "step").Int())
			if at := field(e, "wall_time").Float(); !(math.Abs(at-float64(time.Now().Unix())) < 3600) {
				t.Errorf("%s: event %d has the time %v", name, i, at)
			}
			if v := field(e, "file_version").String(); (v == "brain.Event:2") != (i == 0) {
				t.Errorf("%s: event %d has the version %q", name, i, v)
			}
			if field(field(e, "session_log").Message(), "status").Enum() == 1 {
				for tag, points := range out {
					out[tag] = slices.DeleteFunc(points, func(p [2]float64) bool { return p[0] >= step })
				}
			}
			values := field(field(e, "summary").Message(), "value").List()
			for k := range values.Len() {
				v := values.Get(k).Message()
				tag := field(v, "tag").String()
				out[tag] = append(out[tag], [2]float64{step, field(v, "simple_value").Float()})
			}
		}
	}
	return out
}

// TestEvents reads what was written with definitions of its own, also after a run that
// was resumed from a checkpoint before its last point.
func TestEvents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for step := range int64(4) {
		if err := w.Scalars(118*(step+1), Scalar{"ll/train", -float64(step)}, Scalar{"ll/valid", math.NaN()}, Scalar{"é", math.Inf(-1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Scalars(1<<40, Scalar{"none", math.Inf(1)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{again.Restart(237), again.Scalars(354, Scalar{"ll/train", 0.5}), again.Scalars(math.MaxInt64, Scalar{"é", 1e38}, Scalar{"too large", 1e39}), again.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := curves(t, dir)
	if want := [][2]float64{{118, 0}, {236, -1}, {354, 0.5}}; !slices.Equal(got["ll/train"], want) {
		t.Errorf("curve %v, want %v", got["ll/train"], want)
	}
	if want := [][2]float64{{math.MaxInt64, float64(float32(1e38))}}; !slices.Equal(got["é"], want) || len(got) != 2 {
		t.Errorf("curves %v, want é to be %v and no third", got, want)
	}
	if err := again.Scalars(1, Scalar{"x", 1}); err == nil {
		t.Error("a closed file takes scalars")
	}
	if _, err := Create(filepath.Join(dir, filepath.Base(w.f.Name()))); err == nil {
		t.Error("a file is a directory")
	}
}

// TestMasked holds the checksum to the published one of CRC-32C.
func TestMasked(t *testing.T) {
	c := uint32(0xe3069283) // of "123456789"
	if got, want := masked([]byte("123456789")), (c>>15|c<<17)+0xa282ead8; got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}
