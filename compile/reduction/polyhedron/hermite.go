package polyhedron

// Hermite returns the row-style Hermite normal form of a matrix without its zero
// rows: a basis of the lattice that the rows generate. Each row's first entry that
// is not 0, its pivot, is positive and to the right of the pivot above, and the entries above a
// pivot are at least 0 and less than it. The matrix has n columns.
func Hermite(matrix [][]int64, n int) ([][]int64, error) {
	m := make([][]int64, len(matrix))
	for i, r := range matrix {
		m[i] = append([]int64{}, r...)
	}
	h, err := hermite(m, n)
	return m[:h], err
}

// hermite brings m into Hermite normal form by its first n columns, in place, and
// returns the number of rows with a pivot there.
func hermite(m [][]int64, n int) (int, error) {
	rank := 0
	for col := 0; col < n && rank < len(m); col++ {
		for { // Euclid's algorithm on the column
			least := -1
			others := 0
			for i := rank; i < len(m); i++ {
				if m[i][col] == 0 {
					continue
				}
				others++
				if least < 0 || magnitude(m[i][col]) < magnitude(m[least][col]) {
					least = i
				}
			}
			if least < 0 {
				break
			}
			m[rank], m[least] = m[least], m[rank]
			if others == 1 {
				break
			}
			for i := rank + 1; i < len(m); i++ {
				if err := subtractRow(m[i], m[rank], quotient(m[i][col], m[rank][col])); err != nil {
					return 0, err
				}
			}
		}
		if m[rank][col] == 0 {
			continue
		}
		if m[rank][col] < 0 {
			for j := range m[rank] {
				m[rank][j] = -m[rank][j]
			}
		}
		for i := range rank {
			if err := subtractRow(m[i], m[rank], floorDiv(m[i][col], m[rank][col])); err != nil {
				return 0, err
			}
		}
		rank++
	}
	return rank, nil
}

// quotient is x/y, y of any sign, rounded towards zero.
func quotient(x, y int64) int64 { return x / y }

// subtractRow subtracts q times p from r.
func subtractRow(r, p []int64, q int64) error {
	if q == 0 {
		return nil
	}
	for j := range r {
		x, ok := mul(q, p[j])
		y, ok2 := add(r[j], -x)
		if !ok || !ok2 || x == -1<<63 || y == -1<<63 {
			return ErrOverflow
		}
		r[j] = y
	}
	return nil
}

// Kernel returns a basis of the integer vectors x of length n that every row of the
// matrix is orthogonal to, in Hermite normal form: each such vector is an integer combination
// of the basis.
func Kernel(matrix [][]int64, n int) ([][]int64, error) {
	rows := len(matrix)
	m := make([][]int64, n) // the transposed matrix, and the identity on its right
	for j := range m {
		m[j] = make([]int64, rows+n)
		for i := range rows {
			m[j][i] = matrix[i][j]
		}
		m[j][rows+j] = 1
	}
	rank, err := hermite(m, rows)
	if err != nil {
		return nil, err
	}
	var basis [][]int64
	for _, r := range m[rank:] {
		basis = append(basis, r[rows:])
	}
	return Hermite(basis, n)
}

// Dot is the scalar product of two vectors. It reports whether it fits into 64 bits.
func Dot(x, y []int64) (int64, bool) {
	var s int64
	for k, c := range x {
		p, ok := mul(c, y[k])
		if !ok {
			return 0, false
		}
		if s, ok = add(s, p); !ok {
			return 0, false
		}
	}
	return s, true
}
