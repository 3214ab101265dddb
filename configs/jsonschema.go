package configs

import (
	"encoding/json"
	"math"
	"reflect"
	"time"
)

// JSONSchema returns the JSON Schema (draft 2020-12) of a config file, for
// editors: keys, meanings, ranges and defaults.
func JSONSchema() ([]byte, error) {
	defaults := map[string]any{}
	schema.values(reflect.ValueOf(*Default()), func(f *field, v any) {
		switch v := v.(type) {
		case time.Duration:
			defaults[f.path] = v.String()
		case Paths, []string, []int, []float64, []Column, []Piece:
			// empty by default
		default:
			defaults[f.path] = v
		}
	})
	s := schema.jsonSchema(defaults)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "pce config"
	return json.MarshalIndent(s, "", "  ")
}

func (f *field) jsonSchema(defaults map[string]any) map[string]any {
	s := f.jsonType(defaults)
	if f.doc != "" {
		s["description"] = f.doc
	}
	if d, ok := defaults[f.path]; ok {
		s["default"] = d
	}
	return s
}

// jsonType returns the JSON Schema of the values that f takes, without title and default,
// which the caller adds. Ranges and choices are those that the checks of configs apply.
func (f *field) jsonType(defaults map[string]any) map[string]any {
	if len(f.fields) > 0 {
		properties := map[string]any{}
		for _, c := range f.fields {
			properties[c.key] = c.jsonSchema(defaults)
		}
		object := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
		if f.isSection() {
			object["type"] = []string{"object", "null"} // a section without a key, or a file, which YAML reads as nothing
			return object
		}
		return map[string]any{"type": "array", "items": object}
	}
	text := map[string]any{"type": "string"}
	switch f.typ {
	case reflect.TypeFor[time.Duration]():
		return text
	case reflect.TypeFor[Paths]():
		return map[string]any{"oneOf": []any{text, map[string]any{"type": "array", "items": text}}}
	case reflect.TypeFor[[]string]():
		return map[string]any{"type": "array", "items": text}
	case reflect.TypeFor[[]int]():
		return map[string]any{"type": "array", "items": f.number("integer")}
	case reflect.TypeFor[[]float64]():
		return map[string]any{"type": "array", "items": f.number("number")}
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return f.number("number")
	case reflect.Int:
		return f.number("integer")
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	}
	if len(f.enum) > 0 {
		text["enum"] = f.enum
	}
	return text
}

// number is a numeric type with the key's range or words.
func (f *field) number(kind string) map[string]any {
	s := map[string]any{"type": kind}
	if len(f.enum) > 0 {
		words := make([]json.Number, len(f.enum))
		for i, w := range f.enum {
			words[i] = json.Number(w)
		}
		s["enum"] = words
	}
	if !math.IsInf(f.min, 0) {
		s["minimum"] = f.min
	}
	if !math.IsInf(f.max, 0) {
		s["maximum"] = f.max
	}
	return s
}
