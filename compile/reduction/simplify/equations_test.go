package simplify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// equations is a random program of one parameter N: reductions, and for each an array of the same indices that
// is a copy of its elements.
type equations []*equation

// equation is a reduction. Rows have a coefficient for each dimension, for N, and a constant.
type equation struct {
	dims  int
	index []int // dimensions
	rows  [][]int
	reads []access
	whole *face
}

// access is an element of an array that an equation reads; -1 and -2 are inputs of one and two indices.
type access struct {
	array int
	index [][]int
}

func evaluate(row, z []int, n int) int {
	v := row[len(z)]*n + row[len(z)+1]
	for d, x := range z {
		v += row[d] * x
	}
	return v
}

// randomEquations draws a program, or nil if it is out of bounds or its elements need themselves.
func randomEquations(r *rand.Rand) equations {
	var e equations
	ranks := make([]int, 1+r.IntN(3))
	for k := range ranks {
		ranks[k] = 1 + r.IntN(2)
	}
	for k := range ranks {
		q := &equation{dims: min(3, ranks[k]+1+r.IntN(2))}
		q.index = r.Perm(q.dims)[:ranks[k]]
		unit := func(d, c, n, constant int) []int {
			row := make([]int, q.dims+2)
			row[d], row[q.dims], row[q.dims+1] = c, n, constant
			return row
		}
		for d := range q.dims {
			q.rows = append(q.rows, unit(d, 1, 0, 0), unit(d, -1, 1, -1))
		}
		for range r.IntN(4) {
			row := unit(0, 0, 0, r.IntN(4)-2)
			for d := range q.dims {
				row[d] = r.IntN(3) - 1
			}
			if r.IntN(2) == 0 {
				row[q.dims] = r.IntN(2)
			}
			q.rows = append(q.rows, row)
		}
		for range 1 + r.IntN(2) {
			a := access{array: r.IntN(len(ranks)+2) - 2}
			rank := -a.array
			if a.array >= 0 {
				rank = ranks[a.array]
			}
			for range rank {
				x := unit(r.IntN(q.dims), 1, 0, 0)
				if a.array < 0 && r.IntN(3) == 0 { // i+j, or N+i-j
					if d := r.IntN(q.dims); r.IntN(2) == 0 {
						x[d]++
					} else {
						x[d]--
						x[q.dims] = 1
					}
				}
				a.index = append(a.index, x)
			}
			q.reads = append(q.reads, a)
			if a.array >= 0 && r.IntN(4) > 0 { // before or after the element that is written
				row := unit(0, 0, 0, -1)
				sign := 1 - 2*r.IntN(2)
				row[q.index[0]] += sign
				row[slices.Index(a.index[0], 1)] -= sign
				q.rows = append(q.rows, row)
			}
		}
		e = append(e, q)
	}
	for k, q := range e {
		q.whole = q.all(k)
		if slices.ContainsFunc(q.whole.at, func(l []point) bool { return len(l) == 0 }) {
			return nil
		}
	}
	if e.cyclic(nil) {
		return nil
	}
	return e
}

// source writes the program. Arrays are s0, s1 and so on, copies c0, c1.
func (e equations) source(op string) string {
	var b strings.Builder
	b.WriteString("param N : N >= 5;\nsize N = 1000;\ninput float x[4*N], y[4*N,4*N];\n")
	var outputs []string
	for k, q := range e {
		extents := strings.Repeat(",N", len(q.index))[1:]
		fmt.Fprintf(&b, "array float s%d[%s], c%d[%s];\n", k, extents, k, extents)
		outputs = append(outputs, fmt.Sprintf("s%d", k))
	}
	fmt.Fprintf(&b, "output %s;\n", strings.Join(outputs, ", "))
	names := []string{"i", "j", "k"}
	affine := func(row []int, dims int) string {
		out := fmt.Sprint(row[dims+1])
		for d, c := range row[:dims+1] {
			if c != 0 {
				out += fmt.Sprintf(" + %d*%s", c, append(slices.Clone(names[:dims]), "N")[d])
			}
		}
		return out
	}
	for k, q := range e {
		var index, body, domain []string
		for _, d := range q.index {
			index = append(index, names[d])
		}
		for _, a := range q.reads {
			var at []string
			for _, x := range a.index {
				at = append(at, affine(x, q.dims))
			}
			name := "c" + fmt.Sprint(a.array)
			if a.array < 0 {
				name = map[int]string{-1: "x", -2: "y"}[a.array]
			}
			body = append(body, fmt.Sprintf("0.125*%s[%s]", name, strings.Join(at, ",")))
		}
		for _, row := range q.rows {
			domain = append(domain, affine(row, q.dims)+" >= 0")
		}
		fmt.Fprintf(&b, "s%d[%s] %s %s : { [%s] : %s };\n", k, strings.Join(index, ","), op, strings.Join(body, "*"), strings.Join(names[:q.dims], ","), strings.Join(domain, ", "))
		own := names[:len(q.index)]
		at := strings.Join(own, ",")
		fmt.Fprintf(&b, "c%d[%s] = select(s%d[%s] > 4.0, 0.5, s%d[%s]) : { [%s] : 0 <= %s < N };\n", k, at, k, at, k, at, at, strings.Join(own, " < N, 0 <= "))
	}
	return b.String()
}
