package asm

// VEX appends an instruction of a width with VEX prefix: reg and v are register operands, o is the
// r/m operand. An instruction without v takes 0 for it; one with a digit in place of reg takes its
// destination as v.
func (c *Code) VEX(in *Inst, w Width, reg, v Reg, o Operand, imm ...byte) {
	if !in.vex || w == Z {
		panic("BUG: asm: no VEX form of " + in.Name)
	}
	r := uint8(reg)
	if in.form == FormShift {
		r = in.digit
	}
	b, x, _ := o.high()
	p := byte(^v&15)<<3 | in.pp
	if w == Y {
		p |= 4
	}
	high := byte(0x80)
	if r&8 != 0 {
		high = 0
	}
	if !b && !x && in.m == m0F && in.vw == 0 {
		c.bytes = append(c.bytes, 0xC5, high|p, in.code)
		c.end(r, &o, 1, imm)
		return
	}
	q := in.m | high
	if !x {
		q |= 0x40
	}
	if !b {
		q |= 0x20
	}
	c.bytes = append(c.bytes, 0xC4, q, in.vw<<7|p, in.code)
	c.end(r, &o, 1, imm)
}

func (c *Code) end(reg uint8, o *Operand, unit int32, imm []byte) {
	c.modRM(reg, o, unit)
	c.bytes = append(c.bytes, imm...)
}

// Lanes chooses the lanes that an EVEX instruction works on.
type Lanes struct {
	Mask      Mask
	Zero      bool // other lanes become 0; else they keep what they have
	Broadcast bool // the memory operand is one element for all lanes, as of Operand.Each
}

// EVEX appends an instruction of a width with EVEX prefix; operands are as of VEX.
func (c *Code) EVEX(in *Inst, w Width, l Lanes, reg, v Reg, o Operand, imm ...byte) {
	l.Broadcast = l.Broadcast || o.each
	if !in.evex || l.Broadcast && in.elem == 0 {
		panic("BUG: asm: no EVEX form of " + in.Name)
	}
	r := uint8(reg)
	if in.form == FormShift {
		r = in.digit
	}
	b, x, vx := o.high()
	p := in.m
	if r&8 == 0 {
		p |= 0x80
	}
	if !x {
		p |= 0x40
	}
	if !b {
		p |= 0x20
	}
	if r&16 == 0 {
		p |= 0x10
	}
	s := byte(w)<<5 | byte(l.Mask)
	if v&16 == 0 && !vx {
		s |= 8
	}
	if l.Broadcast {
		s |= 0x10
	}
	if l.Zero {
		s |= 0x80
	}
	c.bytes = append(c.bytes, 0x62, p, in.ew<<7|byte(^v&15)<<3|4|in.pp, s, in.code)
	c.end(r, &o, in.unit(w, l.Broadcast), imm)
}

// unit is what a displacement of one byte counts.
func (in *Inst) unit(w Width, broadcast bool) int32 {
	if broadcast {
		return int32(in.elem)
	}
	if in.scalar != 0 {
		return int32(in.scalar)
	}
	return int32(w.Bytes() >> in.shrinkRM)
}

// MaskOnes appends an instruction that sets the 16 lanes of a mask.
func (c *Code) MaskOnes(k Mask) {
	c.bytes = append(c.bytes, 0xC5, 0x80|byte(^k&15)<<3|4, 0x46, 0xC0|byte(k)<<3|byte(k))
}
