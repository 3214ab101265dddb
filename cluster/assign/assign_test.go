package assign

import "testing"

func TestNext(t *testing.T) {
	for _, tc := range []struct {
		name    string
		workers []Worker
		want    []int // who gets the shards, one after another
	}{
		{"nobody", nil, []int{-1}},
		{"equal", []Worker{{Depth: 2}, {Depth: 2}, {Depth: 2}}, []int{0, 1, 2, 0, 1, 2, -1}},
		{"one unknown", []Worker{{Depth: 1, Speed: 10}, {Depth: 1}}, []int{0, 1, -1}},
		{"fast and slow", []Worker{{Depth: 9, Speed: 1}, {Depth: 9, Speed: 4}}, []int{1, 1, 1, 0, 1, 1}},
		{"waits for the fast one", []Worker{{Depth: 2, Speed: 1}, {Depth: 2, Speed: 10}}, []int{1, 1, -1}},
		{"barred", []Worker{{Depth: 1, Barred: true}, {Depth: 1}}, []int{1, -1}},
	} {
		for i, want := range tc.want {
			got := Next(tc.workers)
			if got != want {
				t.Errorf("%s: shard %d goes to %d, want %d", tc.name, i, got, want)
				break
			}
			if got >= 0 {
				tc.workers[got].Leased++
			}
		}
	}
}

func TestStretch(t *testing.T) {
	for _, tc := range []struct{ pending, workers, want int }{{0, 0, 1}, {4, 4, 1}, {1000, 4, 15}, {1 << 20, 1, 64}} {
		if got := Stretch(tc.pending, tc.workers); got != tc.want {
			t.Errorf("Stretch(%d, %d) = %d, want %d", tc.pending, tc.workers, got, tc.want)
		}
	}
}

func TestMedian(t *testing.T) {
	var m Median
	if m.Value() != 0 {
		t.Errorf("before the first speed: %v", m.Value())
	}
	for i, want := range []float64{5, 5, 3, 3, 3} {
		m.Add([]float64{5, 3, 1, 2, 9}[i])
		if m.Value() != want {
			t.Errorf("after %d speeds: %v, want %v", i+1, m.Value(), want)
		}
	}
	for range 15 {
		m.Add(100)
	}
	if m.Value() != 100 {
		t.Errorf("old speeds still count: %v", m.Value())
	}
}
