package reduction

import "github.com/pce-engine/pce/compile/reduction/polyhedron"

// check completes a program that was parsed and reports what does not fit together.
func check(p *Program) error {
	names := map[string]Pos{}
	declare := func(name string, at Pos) error {
		if first, ok := names[name]; ok {
			return errorf(at, "%s is declared already, at %d:%d", name, first.Line, first.Column)
		}
		if _, ok := functions[name]; ok {
			return errorf(at, "%s is a function", name)
		}
		names[name] = at
		return nil
	}
	if len(p.Params) > MaxParams {
		return errorf(p.Params[MaxParams].Pos, "%d parameters; want at most %d", len(p.Params), MaxParams)
	}
	params := map[string]bool{}
	for _, q := range p.Params {
		if err := declare(q.Name, q.Pos); err != nil {
			return err
		}
		params[q.Name] = true
	}
	for name := range p.Sizes {
		if !params[name] {
			return errorf(Pos{}, "the size of %s is given, which is not a parameter", name)
		}
	}
	if err := checkChains(p.Context, params, "parameter"); err != nil {
		return err
	}
	for _, a := range p.Arrays {
		if err := declare(a.Name, a.Pos); err != nil {
			return err
		}
		if err := checkArray(a, params); err != nil {
			return err
		}
		p.byName[a.Name] = a
	}
	for _, name := range p.Outputs {
		if a := p.byName[name]; a == nil || a.Input {
			return errorf(Pos{}, "output %s is not a declared array", name)
		}
	}
	if len(p.Outputs) == 0 {
		return errorf(Pos{}, "no outputs; name what to compute by 'output NAME;'")
	}
	written := map[string]*Statement{}
	for _, s := range p.Statements {
		if err := checkStatement(p, s, params); err != nil {
			return err
		}
		if first := written[s.Array]; first != nil && first.Op != s.Op {
			return errorf(s.Pos, "%s is written with %v here and with %v at %d:%d; want one operator for an array", s.Array, s.Op, first.Op, first.Line, first.Column)
		}
		written[s.Array] = s
	}
	for _, a := range p.Arrays {
		if !a.Input && written[a.Name] == nil {
			return errorf(a.Pos, "no statement writes %s", a.Name)
		}
	}
	if err := checkAccess(p); err != nil {
		return err
	}
	return checkFolds(p)
}

func checkArray(a *Array, params map[string]bool) error {
	if a.Scalar && !a.Input {
		return errorf(a.Pos, "%s has no brackets; an array of one element is %s[]", a.Name, a.Name)
	}
	bounds := a.Extents
	if a.Range != nil {
		if a.Type != Int {
			return errorf(a.Pos, "%s has a range of values and is not of type int", a.Name)
		}
		bounds = append(bounds[:len(bounds):len(bounds)], a.Range.Low, a.Range.High)
	}
	for i := range bounds {
		if err := checkNames(&bounds[i], params, "parameter"); err != nil {
			return err
		}
	}
	return nil
}

// checkNames reports a name in a that is not known.
func checkNames(a *Affine, known map[string]bool, what string) error {
	for _, t := range a.Terms {
		if !known[t.Name] {
			return errorf(a.Pos, "%s is not a %s", t.Name, what)
		}
	}
	return nil
}

func checkChains(list []Chain, known map[string]bool, what string) error {
	for _, c := range list {
		for i := range c.Terms {
			if err := checkNames(&c.Terms[i], known, what); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkStatement(p *Program, s *Statement, params map[string]bool) error {
	a := p.byName[s.Array]
	switch {
	case a == nil:
		return errorf(s.Pos, "%s is not declared", s.Array)
	case a.Input:
		return errorf(s.Pos, "%s is an input and cannot be written", s.Array)
	case len(s.Index) != len(a.Extents):
		return errorf(s.Pos, "%s has %d indices here; want %d", s.Array, len(s.Index), len(a.Extents))
	case len(s.Dims) > MaxDims:
		return errorf(s.Pos, "%d dimensions; want at most %d", len(s.Dims), MaxDims)
	}
	known := map[string]bool{}
	for name := range params {
		known[name] = true
	}
	for _, d := range s.Dims {
		if params[d] || p.byName[d] != nil {
			return errorf(s.Pos, "dimension %s has the name of a parameter or array", d)
		}
		known[d] = true
	}
	if err := checkChains(s.Domain, known, "parameter or dimension"); err != nil {
		return err
	}
	for i := range s.Index {
		if err := checkNames(&s.Index[i], known, "parameter or dimension"); err != nil {
			return err
		}
	}
	if err := checkTypes(p, s, a, known); err != nil {
		return err
	}
	if err := checkDraw(s); err != nil {
		return err
	}
	return checkBounds(p, s)
}

// checkTypes reports a body or guard of the wrong type.
func checkTypes(p *Program, s *Statement, a *Array, known map[string]bool) error {
	t := typer{prog: p, known: known}
	body, err := t.of(s.Body)
	switch {
	case err != nil:
		return err
	case body == Condition:
		return errorf(s.Body.Position(), "a condition is not a value; want select(condition, a, b)")
	case s.Op.Draws() && a.Type != Int:
		return errorf(s.Pos, "%s draws integers and is of type %v", s.Array, a.Type)
	case !s.Op.Draws() && a.Type == Int && body == Float:
		return errorf(s.Body.Position(), "%s is of type int and the value is a float; want floor(...)", s.Array)
	case a.Type == Int && (s.Op == Max || s.Op == Min || s.Op == LogSumExp):
		return errorf(s.Pos, "%s is of type int, and %v of nothing is infinite; want type float", s.Array, s.Op)
	}
	if s.Uniform != nil {
		if u, err := t.of(s.Uniform); err != nil {
			return err
		} else if u == Condition {
			return errorf(s.Uniform.Position(), "a condition is not a number")
		}
	}
	for _, g := range s.Guards {
		got, err := t.of(g)
		if err != nil {
			return err
		}
		if got != Condition {
			return errorf(g.Position(), "%s is not a condition; want a comparison such as x == y", Text(g))
		}
	}
	return nil
}

// checkDraw finds the dimension that a draw is over: the one that the index list
// lacks. The others are the index list, each by itself.
func checkDraw(s *Statement) error {
	if !s.Op.Draws() {
		return nil
	}
	used := map[string]bool{}
	for i := range s.Index {
		for _, t := range s.Index[i].Terms {
			used[t.Name] = true
		}
	}
	s.drawn = -1
	for i, d := range s.Dims {
		switch {
		case used[d]:
		case s.drawn >= 0:
			return errorf(s.Pos, "a draw over both %s and %s; want one dimension that is not in the index list", s.Dims[s.drawn], d)
		default:
			s.drawn = i
		}
	}
	if s.drawn < 0 {
		return errorf(s.Pos, "all dimensions are in the index list; a draw is over one that is not")
	}
	if d := s.Dims[s.drawn]; mentions(s.Uniform, d, nil) {
		return errorf(s.Uniform.Position(), "%s changes with %s, which the draw is over; want one number for each element", Text(s.Uniform), d)
	}
	return nil
}

// checkBounds reports a domain without bounds, or of too many constraints.
func checkBounds(p *Program, s *Statement) error {
	pieces, err := p.domain(s, nil)
	if err != nil {
		return err
	}
	for _, set := range pieces {
		_, err := polyhedron.NewScan(set, len(p.Params))
		if e := (*polyhedron.UnboundedError)(nil); asUnbounded(err, &e) {
			return errorf(s.Pos, "dimension %s has no %s bound", s.Dims[e.Var-len(p.Params)], [...]string{"lower", "upper"}[btoi(e.Above)])
		}
		if err != nil {
			return errorf(s.Pos, "the domain is too large for an analysis: %v", err)
		}
	}
	return nil
}
