package digits

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"
)

// TestRenderIsFixed holds the pictures still: on every machine, for any number
// of workers, in every version.
func TestRenderIsFixed(t *testing.T) {
	pixels, labels, err := Render(1, 500)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%x", sha256.Sum256(append(pixels, labels...)))[:16], "8aaea8bbb2539ad9"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	fewer, _, err := Render(1, 7)
	if err != nil || !bytes.Equal(fewer, pixels[:len(fewer)]) {
		t.Errorf("picture i depends on how many there are, %v", err)
	}
	other, _, err := Render(2, 7)
	if err != nil || bytes.Equal(other, fewer) {
		t.Errorf("the seed does not matter, %v", err)
	}
}

// TestDigitsAreDistinct classifies pictures by the nearest mean of a class.
func TestDigitsAreDistinct(t *testing.T) {
	const train, test = 4000, 1000
	pixels, labels, err := Render(1, train+test)
	if err != nil {
		t.Fatal(err)
	}
	var means [10][Pixels]float64
	var count [10]float64
	for i := range train {
		d := labels[i]
		count[d]++
		for j, p := range pixels[i*Pixels : (i+1)*Pixels] {
			means[d][j] += float64(p)
		}
	}
	for d := range means {
		if count[d] < train/20 {
			t.Errorf("digit %d stands in %v of %d pictures", d, count[d], train)
		}
		for j := range means[d] {
			means[d][j] /= count[d]
		}
	}
	right := 0
	for i := train; i < train+test; i++ {
		best, nearest := 0, -1.0
		for d := range means {
			sum := 0.0
			for j, p := range pixels[i*Pixels : (i+1)*Pixels] {
				x := float64(p) - means[d][j]
				sum += x * x
			}
			if nearest < 0 || sum < nearest {
				best, nearest = d, sum
			}
		}
		if best == int(labels[i]) {
			right++
		}
	}
	if !(float64(right)/test > 0.6) {
		t.Errorf("nearest mean is right for %d of %d", right, test)
	}
	t.Logf("nearest mean is right for %d of %d", right, test)
}

// TestInkAndPaper checks that pictures hold paper, ink, and nothing cut off.
func TestInkAndPaper(t *testing.T) {
	pixels, _, err := Render(3, 1000)
	if err != nil {
		t.Fatal(err)
	}
	border := 0
	for i := range 1000 {
		p := pixels[i*Pixels : (i+1)*Pixels]
		paper, ink := 0, 0
		for j, v := range p {
			if v == 0 {
				paper++
			} else if v > 140 {
				ink++
			}
			if j < Side && v > 140 {
				border++
			}
		}
		if paper < Pixels/3 || ink < 12 {
			t.Errorf("picture %d has %d pixels of paper, %d of ink", i, paper, ink)
		}
	}
	if border > 28 {
		t.Errorf("%d pixels of ink in first rows", border)
	}
}
