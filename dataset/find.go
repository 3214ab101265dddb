package dataset

import (
	"cmp"
	"strconv"
)

// Find returns the column that a user names: by its name or, where none has that name,
// by its number counted from 1.
func (s *Schema) Find(name string) (int, error) {
	for i := range s.Columns {
		if name != "" && s.Columns[i].Name == name {
			return i, nil
		}
	}
	// A number as Keys has it: 01 and +1 are names, of columns that are not there.
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(s.Columns) && strconv.Itoa(n) == name {
		return n - 1, nil
	}
	return 0, badSetting("the model has no column %.80q; write a name of its header or a number from 1 to %d", name, len(s.Columns))
}

// FindAll is Find of several columns, each of which may come once.
func (s *Schema) FindAll(names []string) ([]int, error) {
	columns, seen := make([]int, len(names)), make(map[int]bool, len(names))
	for i, name := range names {
		c, err := s.Find(name)
		if err != nil {
			return nil, err
		}
		if seen[c] {
			return nil, badSetting("%s is named twice; name each column once", s.ColumnName(c))
		}
		columns[i], seen[c] = c, true
	}
	return columns, nil
}

// Keys returns which key of settings for columns each of some columns has, "" where it has
// none: its name, its place counted from 1 where no column has that for a name, or * for
// those that no other key means, which a column of that name goes by its place for. A column without a place has that of its index.
func Keys[T any](settings map[string]T, columns []Column) []string {
	names := make(map[string]bool, len(columns))
	for i := range columns {
		names[columns[i].Name] = true
	}
	keys := make([]string, len(columns))
	for i := range columns {
		place := strconv.Itoa(cmp.Or(columns[i].Place, i+1))
		if names[place] {
			place = ""
		}
		name := columns[i].Name
		if name == "*" {
			name = ""
		}
		for _, key := range []string{name, place, "*"} {
			if _, ok := settings[key]; ok && key != "" {
				keys[i] = key
				break
			}
		}
	}
	return keys
}
