package structures

import "testing"

func BenchmarkChowLiu(b *testing.B) {
	for _, data := range []struct {
		name string
		src  *table
	}{
		{"data=strokes/vars=784", strokes(20000, 1)},
		{"data=noise/vars=784", noise(784, 20000, 256, 1)},
		{"data=binary/vars=784", noise(784, 20000, 2, 1)},
	} {
		b.Run(data.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := ChowLiu(b.Context(), data.src, DefaultChowLiu()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
