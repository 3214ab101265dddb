package reduction

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// maxDepth bounds the elements that are in hand at a time, because each takes
// memory of the stack. An element that needs a longer chain is put off until the
// far end of the chain is there.
const maxDepth = 10000

// tooDeep asks for an element before what is in hand is tried again.
type tooDeep struct{ element }

// demand computes an element and what it needs.
func (m *machine) demand(e element) error {
	stack := []element{e}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		deep, err := m.try(top)
		if err != nil {
			return err
		}
		if deep == nil {
			stack = stack[:len(stack)-1]
			continue
		}
		if deep.of.state[deep.at] == waiting { // one of the stack: it needs itself
			return errorf(deep.of.writers[0].stmt.Pos, "%v needs itself, through more than %d elements", *deep, maxDepth)
		}
		for _, s := range stack {
			s.of.state[s.at] = waiting
		}
		stack = append(stack, *deep)
	}
	return nil
}

// try computes an element unless that needs more than maxDepth elements in hand at a
// time; then it returns one that has to be computed first.
func (m *machine) try(e element) (deep *element, err error) {
	if e.of.state[e.at] == done {
		return nil, nil
	}
	defer func() {
		failure := recover()
		for _, a := range m.active {
			a.of.state[a.at] = unknown
		}
		m.active = m.active[:0]
		switch f := failure.(type) {
		case nil:
		case tooDeep:
			deep = &f.element
		case failed:
			err = f.error
		default:
			panic(failure)
		}
	}()
	e.of.state[e.at] = unknown
	m.compute(e)
	return nil, nil
}

// failed carries an error out of the evaluation.
type failed struct{ error }

func fail(at Pos, format string, args ...any) {
	panic(failed{errorf(at, format, args...)})
}

// need makes sure that an element is there; at is who reads it.
func (m *machine) need(e element, at Pos) {
	switch e.of.state[e.at] {
	case done:
	case unknown:
		if len(m.active) >= maxDepth {
			panic(tooDeep{e})
		}
		m.compute(e)
	case busy:
		fail(at, "%v needs itself: %s", e, m.cycle(e))
	case waiting:
		panic(tooDeep{e})
	}
}

// cycle names the elements in hand from e on.
func (m *machine) cycle(e element) string {
	const most = 6
	var names []string
	for k := len(m.active) - 1; k >= 0; k-- {
		names = append(names, m.active[k].String())
		if m.active[k] == e {
			break
		}
		if len(names) == most {
			names = append(names, "...")
			break
		}
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return strings.Join(append(names, e.String()), " <- ")
}

// compute evaluates the points that write e and stores its value.
func (m *machine) compute(e element) {
	e.of.state[e.at] = busy
	m.active = append(m.active, e)
	if len(e.of.writers) == 0 {
		fail(e.of.decl.Pos, "no statement writes %s", e.of.decl.Name)
	}
	op := e.of.writers[0].stmt.Op
	var value float64
	var integer int64
	switch {
	case op == Assign:
		value, integer = m.assign(e)
	case op.Draws():
		integer = m.draw(e)
	case e.of.decl.Type == Int:
		integer = m.reduceInts(e, op)
	default:
		value = m.reduce(e, op)
	}
	if e.of.decl.Type == Int {
		if s := e.of; s.ranged && (integer < s.low || integer >= s.high) {
			fail(s.writers[0].stmt.Pos, "%v is %d; want %d to %d", e, integer, s.low, s.high-1)
		}
		e.of.Ints[e.at] = integer
	} else {
		e.of.Floats[e.at] = value
	}
	e.of.state[e.at] = done
	m.active = m.active[:len(m.active)-1]
}

// each calls visit with every point that writes e and whose guards hold.
func (m *machine) each(e element, visit func(w *writer, x []int64)) {
	depth := len(m.active)
	for len(m.frames) < depth {
		m.frames = append(m.frames, nil)
	}
	evaluated := make([]int64, len(e.of.writers)) // points, which count once all are: an element that is put off begins with the first
	for k, w := range e.of.writers {
		n := w.given + len(w.stmt.Dims)
		if len(m.frames[depth-1]) < n {
			m.frames[depth-1] = make([]int64, n)
		}
		x := m.frames[depth-1][:n]
		for _, s := range w.scans {
			at := e.at
			for k := w.given - 1; k >= 0; k-- {
				x[k] = int64(at) % e.of.Extents[k]
				at = int(int64(at) / e.of.Extents[k])
			}
			s.Scan(x, func(x []int64) bool {
				m.tick()
				evaluated[k]++
				for _, g := range w.guards {
					if !g(x) {
						return true
					}
				}
				visit(w, x)
				return true
			})
		}
	}
	for k, w := range e.of.writers {
		if !w.free {
			m.points[w.number] += evaluated[k]
		}
	}
}

// tick looks at the context now and then.
func (m *machine) tick() {
	if m.steps--; m.steps < 0 {
		m.steps = 1 << 14
		if err := m.ctx.Err(); err != nil {
			panic(failed{err})
		}
	}
}

// assign evaluates the one point that writes e.
func (m *machine) assign(e element) (value float64, integer int64) {
	var first *writer
	m.each(e, func(w *writer, x []int64) {
		if first != nil {
			fail(w.stmt.Pos, "%v is written twice, here at %v and at %d:%d", e, point(w, x), first.stmt.Line, first.stmt.Column)
		}
		first = w
		if e.of.decl.Type == Int {
			integer = w.body.int(x)
		} else {
			value = w.body.float(x)
		}
	})
	if first == nil {
		fail(e.of.writers[0].stmt.Pos, "%v is needed and no point writes it", e)
	}
	return value, integer
}

// point shows the dimensions of a point.
func point(w *writer, x []int64) []int64 { return x[w.given:] }

// reduceInts adds up in 128 bits, so that only the whole sum has to fit into 64: a sum that was simplified has an
// element more before what it has too much is subtracted.
func (m *machine) reduceInts(e element, op Operator) int64 {
	var high, low uint64
	product := int64(1)
	last := e.of.writers[0]
	m.each(e, func(w *writer, x []int64) {
		last = w
		y := w.body.int(x)
		if op == Add {
			var carry uint64
			low, carry = bits.Add64(low, uint64(y), 0)
			high, _ = bits.Add64(high, uint64(y>>63), carry)
			return
		}
		var ok bool
		if product, ok = mulInts(product, y); !ok {
			fail(w.stmt.Pos, "%v does not fit into 64 bits", e)
		}
	})
	if op != Add {
		return product
	}
	if int64(high) != int64(low)>>63 {
		fail(last.stmt.Pos, "%v does not fit into 64 bits", e)
	}
	return int64(low)
}

func (m *machine) reduce(e element, op Operator) float64 {
	total := op.identity()
	if op == LogSumExp {
		return m.logSumExp(e)
	}
	m.each(e, func(w *writer, x []int64) {
		y := w.body.float(x)
		switch op {
		case Add:
			total += y
		case Multiply:
			total *= y
		case Max:
			total = math.Max(total, y)
		case Min:
			total = math.Min(total, y)
		}
	})
	return total
}

// logSumExp adds up in the order of the points, less their maximum.
func (m *machine) logSumExp(e element) float64 {
	most, sum := math.Inf(-1), 0.0
	var values []float64
	m.each(e, func(w *writer, x []int64) {
		y := w.body.float(x)
		values = append(values, y)
		most = math.Max(most, y)
	})
	if math.IsInf(most, 0) || math.IsNaN(most) {
		return most
	}
	for _, y := range values {
		sum += math.Exp(y - most)
	}
	return most + math.Log(sum)
}

// draw returns the least place whose running weight reaches u times the whole.
func (m *machine) draw(e element) int64 {
	type weighted struct {
		weight float64
		place  int64
	}
	var points []weighted
	var last *writer
	u := math.NaN()
	m.each(e, func(w *writer, x []int64) {
		if last == nil {
			u = w.uniform.float(x)
		}
		last = w
		points = append(points, weighted{w.body.float(x), x[w.given+w.stmt.drawn]})
	})
	// A domain with != is in pieces, of which the first may have the larger places.
	slices.SortFunc(points, func(a, b weighted) int { return cmp.Compare(a.place, b.place) })
	weights, places := make([]float64, len(points)), make([]int64, len(points))
	for k, p := range points {
		weights[k], places[k] = p.weight, p.place
	}
	at := e.of.writers[0].stmt.Pos
	if last == nil {
		fail(at, "%v is drawn from no points", e)
	}
	if last.stmt.Op == DrawLog {
		most := math.Inf(-1)
		for _, x := range weights {
			most = math.Max(most, x)
		}
		for k, x := range weights {
			weights[k] = math.Exp(x - most)
		}
	}
	whole := 0.0
	for k, x := range weights {
		if !(x >= 0) || math.IsInf(x, 1) {
			fail(at, "%v is drawn with a weight of %v at %d; want numbers of at least 0", e, x, places[k])
		}
		whole += x
	}
	if !(u >= 0 && u <= 1) || !(whole > 0) || math.IsInf(whole, 1) {
		fail(at, "%v is drawn by %v from weights that add up to %v; want 0 to 1, and a finite sum above 0", e, u, whole)
	}
	running := 0.0
	for k, x := range weights {
		if running += x; running >= u*whole && x > 0 {
			return places[k]
		}
	}
	return places[len(places)-1]
}
