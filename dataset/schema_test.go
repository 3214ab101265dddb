package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestSchemaEqual: schemas are equal that say the same of every row, and whatever is said otherwise makes them differ.
func TestSchemaEqual(t *testing.T) {
	of := func() *Schema {
		return &Schema{Image: [3]int{1, 2, 1}, Columns: []Column{
			{Name: "a", Categories: 3, Labels: []string{"x", "y", "z"}}, {Name: "b", Kind: Continuous, Offset: 1, Scale: 2, Edges: []float64{0, 1, 4}},
		}}
	}
	if !of().Equal(of()) {
		t.Error("a schema differs from itself")
	}
	for what, change := range map[string]func(s *Schema){
		"image":      func(s *Schema) { s.Image = [3]int{2, 1, 1} },
		"unit":       func(s *Schema) { s.Unit = Word },
		"columns":    func(s *Schema) { s.Columns = s.Columns[:1] },
		"name":       func(s *Schema) { s.Columns[0].Name = "c" },
		"kind":       func(s *Schema) { s.Columns[1].Kind = Discrete },
		"categories": func(s *Schema) { s.Columns[0].Categories++ },
		"label":      func(s *Schema) { s.Columns[0].Labels[1] = "w" },
		"offset":     func(s *Schema) { s.Columns[1].Offset = 0 },
		"scale":      func(s *Schema) { s.Columns[1].Scale = 3 },
		"edge":       func(s *Schema) { s.Columns[1].Edges[2] = 5 },
		"outside":    func(s *Schema) { s.Columns[1].Outside++ },
	} {
		s := of()
		if change(s); s.Equal(of()) || of().Equal(s) {
			t.Errorf("another %s makes no difference", what)
		}
	}
}

func TestSchemaJSON(t *testing.T) {
	words := []string{"<unk>", "a", "b"}
	for _, tt := range []struct {
		schema Schema
		want   string
	}{
		{
			Schema{Columns: []Column{{Categories: 2}, {Categories: 2}, {Categories: 3}, {Kind: Continuous, Name: "x"}}},
			`{"columns":[{"kind":"discrete","categories":2,"repeat":2},{"kind":"discrete","categories":3},{"name":"x","kind":"continuous"}]}`,
		},
		{
			Schema{Columns: []Column{{Categories: 3, Labels: words}, {Categories: 3, Labels: words}}, Unit: Word},
			`{"columns":[{"kind":"discrete","categories":3,"labels":0,"repeat":2}],"labels":[["\u003cunk\u003e","a","b"]],"unit":"word"}`,
		},
		{
			Schema{Columns: make([]Column, 12), Image: [3]int{2, 2, 3}},
			`{"columns":[{"kind":"discrete","categories":4,"repeat":12}],"image":[2,2,3]}`,
		},
	} {
		for i := range tt.schema.Columns {
			if c := &tt.schema.Columns[i]; c.Kind == Discrete && c.Categories == 0 {
				c.Categories = 4
			}
		}
		got, err := json.Marshal(&tt.schema)
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, %v, want %s", got, err, tt.want)
			continue
		}
		if value, err := json.Marshal(tt.schema); err != nil || string(value) != tt.want {
			t.Errorf("a value, which has no address, is %s, %v, want %s", value, err, tt.want)
		}
		var back Schema
		if err := json.Unmarshal(got, &back); err != nil || !back.Equal(&tt.schema) {
			t.Errorf("%s read back as %+v, %v", got, back, err)
		}
	}
}

func TestSchemaJSONRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`{"columns":[]}`: "has 0 columns",
		`{"columns":[{"kind":"discrete","categories":2,"repeat":9999999}]}`: "more than 1048576 columns",
		`{"columns":[{"kind":"discrete","categories":2,"repeat":-1}]}`:      "more than",
		`{"columns":[{"kind":"odd"}]}`:                                      "unknown column kind",
		`{"columns":[{"kind":"discrete","categories":16777217}]}`:           "takes 1 to 16777216",
		`{"columns":[{"kind":"discrete","categories":2,"labels":1}]}`:       "no labels 1",
		`{"columns":[{"kind":"continuous"}],"extra":1}`:                     "unknown field",
		`{"columns":[{"kind":"continuous"}],"image":[2,2,1]}`:               "does not have 1 values",
		`{"columns":[{"kind":"continuous"}],"image":[1]}`:                   "takes 3",
		`{"columns":[{"kind":"continuous"}],"unit":"page"}`:                 "char or word",
	} {
		var s Schema
		if err := json.Unmarshal([]byte(in), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestSchemaValidate(t *testing.T) {
	for want, s := range map[string]Schema{
		`two columns are named "a"`:     {Columns: []Column{{Name: "a", Categories: 2}, {Name: "a", Categories: 2}}},
		`has 2 labels for 3 categories`: {Columns: []Column{{Categories: 3, Labels: []string{"x", "y"}}}},
		`has the label "x" twice`:       {Columns: []Column{{Categories: 2, Labels: []string{"x", "x"}}}},
		`continuous but has categories`: {Columns: []Column{{Kind: Continuous, Categories: 2}}},
		`image shape [1 0 1]`:           {Columns: []Column{{Kind: Continuous}}, Image: [3]int{1, 0, 1}},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrSetting) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestSchemaAccepts(t *testing.T) {
	model := &Schema{Columns: []Column{{Name: "a", Categories: 3}, {Kind: Continuous}, {Categories: 2, Labels: []string{"no", "yes"}}}}
	for _, tt := range []struct {
		columns []Column
		want    string
	}{
		{[]Column{{Categories: 2}, {Kind: Continuous}, {Categories: 2, Labels: []string{"no", "yes"}}}, ""},
		{[]Column{{Categories: 2}}, "has 1 columns, the model has 3 variables"},
		{[]Column{{Categories: 4}, {Kind: Continuous}, {Categories: 2}}, "column 1 has 4 categories, the model's has 3"},
		{[]Column{{Categories: 3}, {Categories: 3}, {Categories: 2}}, "column 2 is discrete, the model's is continuous"},
		{[]Column{{Categories: 3}, {Kind: Continuous}, {Categories: 2, Labels: []string{"yes", "no"}}}, "column 3 has other labels"},
		{[]Column{{Categories: 3}, {Kind: Continuous}, {Labels: []string{"no", "yes", "?"}}}, "column 3 has other labels"}, // of a program that forgot their number
	} {
		err := model.Accepts(&Schema{Columns: tt.columns})
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

func FuzzSchemaJSON(f *testing.F) {
	f.Add([]byte(`{"columns":[{"kind":"discrete","categories":3,"labels":0,"repeat":2}],"labels":[["a","b","c"]],"unit":"word"}`))
	f.Add([]byte(`{"columns":[{"name":"x","kind":"continuous"},{"kind":"discrete","categories":2,"repeat":3}],"image":[2,2,1]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var s, back Schema
		if json.Unmarshal(in, &s) != nil {
			return
		}
		out, err := json.Marshal(&s)
		if err != nil {
			t.Fatalf("a schema that was read cannot be written: %v", err)
		}
		if err := json.Unmarshal(out, &back); err != nil || !back.Equal(&s) {
			t.Fatalf("%s read back differently: %v", out, err)
		}
	})
}

// TestPositive reads columns of positive numbers, stored as they are and scaled, from an array and from text: the error for
// another number names its place.
func TestPositive(t *testing.T) {
	for _, scale := range []float64{0, 2} {
		s := &Schema{Columns: []Column{{Kind: Continuous, Scale: scale, Positive: true}}}
		for cell, good := range map[float64]bool{1e-44: true, 3e38: true, 1e-50: false, 0: false, -1: false} {
			for _, path := range []string{numbers(t, [][]float64{{1}, {cell}}), save(t, "a.csv", fmt.Appendf(nil, "1\n%v\n", cell))} {
				_, err := Open(t.Context(), path, Options{Schema: s, Header: HeaderNo})
				if good && err != nil || !good && (!errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), ":2:1: ") || !strings.Contains(err.Error(), "is not a positive number")) {
					t.Errorf("%v in %s, scale %v: %v", cell, path, scale, err)
				}
			}
		}
	}
}

// TestLongNames: names of columns may be as long as a file, and messages have the beginning of them, with the column's number.
func TestLongNames(t *testing.T) {
	s := &Schema{Columns: []Column{{Name: strings.Repeat("n", shownName)}, {Name: "n" + strings.Repeat("é", 1<<15)}, {Name: "short"}}}
	for i, want := range []string{`"` + strings.Repeat("n", shownName) + `"`, `"n` + strings.Repeat("é", shownName/2-1) + `"... (column 2)`, `"short"`} {
		if got := s.ColumnName(i); got != want {
			t.Errorf("column %d: %.600s, want %s", i, got, want)
		}
	}
	long := strings.Repeat("n", 1<<16)
	for name, text := range map[string]string{"unknown.csv": long + ",b\n1,2\n", "twice.csv": long + "," + long + "\n1,2\n"} {
		for _, o := range []Options{{}, {Schema: &Schema{Columns: []Column{{Name: "b", Categories: 3}}}}} {
			_, err := OpenAll(t.Context(), []string{save(t, name, []byte(text))}, o)
			if name == "unknown.csv" && o.Schema == nil {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || len(err.Error()) > 1000 {
				t.Errorf("%s: an error of %d bytes", name, len(fmt.Sprint(err)))
			}
		}
	}
}
