package configs

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is one key of the schema, read from the tags of Config.
type field struct {
	key, path string
	doc       string
	typ       reflect.Type
	enum      []string
	min, max  float64  // -Inf and +Inf where the tags say nothing
	structure string   // value of model.structure that reads the key; "" for all
	fields    []*field // keys of a section, or of each element of a list of sections
}

// schema is the root section: the keys of Config.
var schema = &field{
	typ:    reflect.TypeFor[Config](),
	fields: readFields(reflect.TypeFor[Config](), "", ""),
}

// readFields reads the fields of a config struct from its tags (yaml, doc, min, max, enum,
// for), sections included. It runs once, when the program starts; a tag that cannot be read is
// a bug and panics.
func readFields(t reflect.Type, prefix, structure string) []*field {
	fs := make([]*field, t.NumField())
	for i := range fs {
		sf := t.Field(i)
		f := &field{
			key:       sf.Tag.Get("yaml"),
			doc:       sf.Tag.Get("doc"),
			typ:       sf.Type,
			min:       math.Inf(-1),
			max:       math.Inf(1),
			structure: structure,
		}
		f.path = prefix + f.key
		if s := sf.Tag.Get("for"); s != "" {
			f.structure = s
		}
		if s := sf.Tag.Get("enum"); s != "" {
			f.enum = strings.Split(s, "|")
		}
		if s := sf.Tag.Get("min"); s != "" {
			f.min = mustFloat(s)
		}
		if s := sf.Tag.Get("max"); s != "" {
			f.max = mustFloat(s)
		}
		if st, ok := f.sectionType(); ok {
			f.fields = readFields(st, f.path+".", f.structure)
		}
		fs[i] = f
	}
	return fs
}

// sectionType returns the struct of a section or of the elements of a list.
func (f *field) sectionType() (reflect.Type, bool) {
	t := f.typ
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct
}

// isSection reports whether the key holds keys, and no value of its own.
func (f *field) isSection() bool { return f.typ.Kind() == reflect.Struct }

// child returns the key of a section, or nil.
func (f *field) child(key string) *field {
	if i := slices.IndexFunc(f.fields, func(c *field) bool { return c.key == key }); i >= 0 {
		return f.fields[i]
	}
	return nil
}

// lookup returns the key with a dotted path, or nil. It does not look into the
// elements of lists.
func lookup(path string) *field {
	f := schema
	for key := range strings.SplitSeq(path, ".") {
		if !f.isSection() {
			return nil
		}
		if f = f.child(key); f == nil {
			return nil
		}
	}
	return f
}

// values visits every key that holds a value, in order, with its value in v.
func (f *field) values(v reflect.Value, visit func(*field, any)) {
	for i, c := range f.fields {
		if c.isSection() {
			c.values(v.Field(i), visit)
		} else {
			visit(c, v.Field(i).Interface())
		}
	}
}

// want says in words what a value of the key looks like, for errors: "must be a list of
// integers from 1 to 9".
func (f *field) want() string {
	if len(f.enum) > 0 {
		return "one of " + strings.Join(f.enum, ", ")
	}
	switch f.typ {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 90s or 5m"
	case reflect.TypeFor[Paths]():
		return "a path or a list of paths"
	case reflect.TypeFor[[]string]():
		return "a list of texts"
	case reflect.TypeFor[[]int]():
		return "a list of integers" + f.rangeWords(" ")
	case reflect.TypeFor[[]float64]():
		return "a list of numbers" + f.rangeWords(" ")
	}
	switch f.typ.Kind() {
	case reflect.String:
		return "a text; put it in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint64:
		return "an integer from " + decimal(f.min) + " to " + strconv.FormatUint(math.MaxUint64, 10)
	case reflect.Int:
		return "an integer" + f.rangeWords(" ")
	case reflect.Float64:
		return "a number" + f.rangeWords(" ")
	case reflect.Slice:
		return "a list of sections"
	}
	return "a section of keys"
}

func (f *field) rangeWords(before string) string {
	lo, hi := !math.IsInf(f.min, 0), !math.IsInf(f.max, 0)
	switch {
	case lo && hi:
		return before + "from " + decimal(f.min) + " to " + decimal(f.max)
	case lo:
		return before + "of at least " + decimal(f.min)
	}
	return ""
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func mustFloat(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic("BUG: configs: tag " + strconv.Quote(s) + " is not a number")
	}
	return x
}
