package reduction

// expr reads a sum, or two that are compared.
func (p *parser) expr() (Expr, error) {
	x, err := p.sum()
	if err != nil || p.tok.kind != symbol || !comparison(p.tok.text) {
		return x, err
	}
	op := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	y, err := p.sum()
	return &Binary{op.Pos, op.text, x, y}, err
}

func (p *parser) sum() (Expr, error) { return p.operands("+", "-", p.term) }

func (p *parser) term() (Expr, error) { return p.operands("*", "/", p.unary) }

// operands reads what one of two operators joins, from the left.
func (p *parser) operands(op1, op2 string, operand func() (Expr, error)) (Expr, error) {
	x, err := operand()
	depth := p.depth
	defer func() { p.depth = depth }()
	for err == nil && (p.is(op1) || p.is(op2)) {
		op := p.tok
		if err := p.deeper(); err != nil { // a chain is as deep as it is long
			return nil, err
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		var y Expr
		y, err = operand()
		x = &Binary{op.Pos, op.text, x, y}
	}
	return x, err
}

// deeper counts a level of nesting, which later walks over the expression recurse by.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxNesting {
		return errorf(p.tok.Pos, "an expression of more than %d levels", maxNesting)
	}
	return nil
}

func (p *parser) unary() (Expr, error) {
	if !p.is("-") {
		return p.atom()
	}
	at := p.tok.Pos
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return nil, err
	}
	x, err := p.unary()
	return &Negate{at, x}, err
}

// atom reads a number, a name, an element, a call or what is in parentheses.
func (p *parser) atom() (Expr, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.tok
	switch {
	case t.kind == integer || t.kind == decimal:
		n, err := literal(t)
		if err != nil {
			return nil, err
		}
		return n, p.advance()
	case t.kind == identifier:
		return p.named(t)
	case p.is("("):
		if err := p.advance(); err != nil {
			return nil, err
		}
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		return x, p.expect(")")
	}
	return nil, errorf(t.Pos, "%v, want a number, a name or '('", t)
}

// named reads what starts with a name.
func (p *parser) named(t token) (Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	switch {
	case p.is("["):
		r := &Read{Pos: t.Pos, Array: t.text}
		return r, p.bracketed(func() error {
			x, err := p.sum()
			r.Index = append(r.Index, x)
			return err
		})
	case p.is("("):
		c := &Call{Pos: t.Pos, Function: t.text}
		if err := p.advance(); err != nil {
			return nil, err
		}
		err := p.list(func() error {
			x, err := p.expr()
			c.Args = append(c.Args, x)
			return err
		})
		if err != nil {
			return nil, err
		}
		return c, p.expect(")")
	}
	return &Name{t.Pos, t.text}, nil
}
