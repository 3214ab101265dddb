package dataset

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// sizes returns the rows of each step of an epoch, as the parts of an order and
// as StepRows has them.
func sizes(t *testing.T, s Schedule) []int {
	t.Helper()
	order := s.Order(0)
	var rows, all []int
	for step := range s.Steps() {
		part := s.Step(order, step)
		if len(part) != s.StepRows(step) {
			t.Fatalf("%+v: step %d takes %d rows, StepRows says %d", s, step, len(part), s.StepRows(step))
		}
		rows, all = append(rows, len(part)), append(all, part...)
	}
	if !slices.Equal(all, order) {
		t.Fatalf("%+v: the steps take %v, the order of the epoch is %v", s, all, order)
	}
	return rows
}

func TestScheduleSizes(t *testing.T) {
	for _, tt := range []struct {
		rows, batch, least int
		want               string
	}{
		{rows: 1, batch: 1, want: "[1]"},
		{rows: 1, batch: 512, want: "[1]"},
		{rows: 8, batch: 4, want: "[4 4]"},
		{rows: 9, batch: 4, want: "[3 3 3]"},
		{rows: 10, batch: 4, want: "[4 3 3]"},
		{rows: 7, batch: 8, want: "[7]"},
		{rows: 8, batch: 8, want: "[8]"},
		{rows: 9, batch: 8, want: "[5 4]"},
		{rows: 11, batch: 1 << 40, want: "[11]"},
		{rows: 11, batch: 11, least: 4, want: "[3 3 3 2]"},
		{rows: 10, batch: 2, least: 6, want: "[2 2 2 2 1 1]"},
		{rows: 3, batch: 3, least: 5, want: "[1 1 1]"},
		{rows: 10, batch: 3, least: 2, want: "[3 3 2 2]"}, // BatchRows asks for more
	} {
		s := Schedule{Rows: tt.rows, BatchRows: tt.batch, MinSteps: tt.least, Seed: 5}
		if got := fmt.Sprint(sizes(t, s)); got != tt.want {
			t.Errorf("%+v: steps of %s rows, want %s", s, got, tt.want)
		}
	}
	// 4 rows are left when plants is cut into batches of 512.
	if got := sizes(t, Schedule{Rows: 17412, BatchRows: 512}); len(got) != 35 || slices.Max(got) != 498 || slices.Min(got) != 497 {
		t.Errorf("17412 rows in batches of 512: %v", got)
	}
}

// TestScheduleSpreadsEvenly tries all small schedules against what is promised.
func TestScheduleSpreadsEvenly(t *testing.T) {
	for rows := 1; rows <= 70; rows++ {
		for batch := 1; batch <= rows+2; batch++ {
			for _, least := range []int{0, 1, 2, 3, rows - 1, rows, rows + 1} {
				s := Schedule{Rows: rows, BatchRows: batch, MinSteps: least, InOrder: true}
				got := sizes(t, s)
				n := (rows + batch - 1) / batch
				n = max(n, min(least, rows))
				if len(got) != n || got[0] > batch || got[0]-got[n-1] > 1 || got[n-1] < 1 || got[0] != (rows+n-1)/n {
					t.Fatalf("%+v: steps of %v rows, want %d", s, got, n)
				}
				if larger := rows % n; larger > 0 && (got[larger-1] == got[larger] || got[larger] != got[n-1]) {
					t.Fatalf("%+v: steps of %v rows; the first %d have one row more", s, got, larger)
				}
			}
		}
	}
}

func TestScheduleValidate(t *testing.T) {
	for _, s := range []Schedule{{Rows: 0, BatchRows: 1}, {Rows: 1}, {Rows: 1, BatchRows: 1, MinSteps: -1}} {
		if err := s.Validate(); !errors.Is(err, ErrSetting) {
			t.Errorf("%+v: %v, want ErrSetting", s, err)
		}
	}
	if err := (Schedule{Rows: 1, BatchRows: 1, MinSteps: 3}).Validate(); err != nil {
		t.Error(err)
	}
}
