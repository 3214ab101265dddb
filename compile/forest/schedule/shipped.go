package schedule

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed shipped/*.schedule
var shipped embed.FS

// suffix ends the names of files of schedules.
const suffix = ".schedule"

// Shipped lists the names of the schedules that are part of the program, in order.
func Shipped() []string {
	list, err := shipped.ReadDir("shipped")
	if err != nil {
		panic("BUG: schedule: " + err.Error())
	}
	var names []string
	for _, e := range list {
		names = append(names, strings.TrimSuffix(e.Name(), suffix))
	}
	return names
}

// ShippedText returns the text of a schedule that is part of the program, by its name.
func ShippedText(name string) (string, error) {
	text, err := shipped.ReadFile("shipped/" + name + suffix)
	if err != nil {
		return "", fmt.Errorf("%w: no shipped schedule %.40q; there are %s", ErrSchedule, name, strings.Join(Shipped(), ", "))
	}
	return string(text), nil
}
