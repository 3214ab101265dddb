package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// choiceKind says what a choice of an operand is.
type choiceKind uint8

const (
	regOfType  choiceKind = iota // index: of the type
	regOfClass                   // class
	vecOfType                    // index, count
	vecOfClass                   // class, count
	literal                      // of the first type
	integer32                    // of 32 bits, signed or not
	natural                      // from 0, at most 2³¹-1
	exactly                      // count
	boolean                      // 0, 1 or -1
	sharedAddr                   // [%r+n] or [variable+n]
	globalAddr                   // [%d+n]
	paramAddr                    // [name]
	labelName                    // of a statement
	sharedName                   // of a variable
	special32                    // a special register
	special64                    // likewise, of 64 bits
)

// choice is one of the things that an operand may be.
type choice struct {
	kind  choiceKind
	class Class
	index int
	count int
}

// shape is a form with its operands taken apart.
type shape struct {
	*form
	outs  int // operands that are written; the first ones
	slots [][]choice
}

// tokens are the choices without a number.
var tokens = map[string]choice{
	"T":       {kind: regOfType, index: 0},
	"U":       {kind: regOfType, index: 1},
	"p":       {kind: regOfClass, class: P},
	"h":       {kind: regOfClass, class: H},
	"r":       {kind: regOfClass, class: R},
	"d":       {kind: regOfClass, class: D},
	"#":       {kind: literal},
	"i":       {kind: integer32},
	"n":       {kind: natural},
	"bool":    {kind: boolean},
	"[s]":     {kind: sharedAddr},
	"[g]":     {kind: globalAddr},
	"[param]": {kind: paramAddr},
	"label":   {kind: labelName},
	"symbol":  {kind: sharedName},
	"special": {kind: special32},
	"clock":   {kind: special64},
}

// specials are the special registers, with their sizes.
var specials = map[string]choiceKind{
	"%tid.x": special32, "%ntid.x": special32, "%laneid": special32,
	"%ctaid.x": special32, "%ctaid.y": special32, "%ctaid.z": special32,
	"%nctaid.x": special32, "%nctaid.y": special32, "%nctaid.z": special32,
	"%clock64": special64,
}

// opcode says which forms an opcode has and of how many parts it is made.
type opcode struct {
	shapes      []*shape
	mods, types int
}

// opcodes returns every opcode that there is.
var opcodes = sync.OnceValue(func() map[string]*opcode {
	m := make(map[string]*opcode, 4096)
	for i := range forms {
		s := newShape(&forms[i])
		for _, text := range expand(s.opcode) {
			o := m[text]
			if o == nil {
				o = &opcode{}
				parts := strings.Split(strings.TrimPrefix(text, "cp."), ".")
				for _, part := range parts[1:] {
					if typesByName[part] != NoType {
						o.types++
					} else {
						o.mods++
					}
				}
				m[text] = o
			}
			o.shapes = append(o.shapes, s)
		}
	}
	return m
})

// newShape takes a row's operands apart. The rows are constants; a token that it
// does not know is a mistake in them.
func newShape(f *form) *shape {
	s := &shape{form: f}
	for _, word := range strings.Fields(f.args) {
		if word == "=" {
			s.outs = len(s.slots)
			continue
		}
		var slot []choice
		for _, token := range strings.Split(word, "|") {
			c, ok := tokens[token]
			switch {
			case ok:
			case token[0] == '{':
				c = tokens[token[1:2]]
				c.kind += vecOfType - regOfType
				c.count = int(token[2] - '0')
			default:
				n, err := strconv.Atoi(token)
				if err != nil {
					panic(fmt.Sprintf("BUG: ptx: form %s has an operand %q", f.opcode, token))
				}
				c = choice{kind: exactly, count: n}
			}
			slot = append(slot, c)
		}
		s.slots = append(s.slots, slot)
	}
	return s
}

// expand writes out the alternatives of an opcode.
func expand(pattern string) []string {
	open := strings.IndexByte(pattern, '{')
	if open < 0 {
		return []string{pattern}
	}
	end := open + strings.IndexByte(pattern[open:], '}')
	var all []string
	for _, part := range strings.Split(pattern[open+1:end], ",") {
		head, tail := pattern[:open], pattern[end+1:]
		if part == "" {
			head = strings.TrimSuffix(head, ".")
		}
		all = append(all, expand(head+part+tail)...)
	}
	return all
}

// match finds the form that an instruction has, or says why it has none.
func (v *verifier) match(in *Inst) (*shape, error) {
	v.text = in.appendOpcode(v.text[:0])
	known := v.opcodes[string(v.text)]
	if known == nil {
		return nil, fmt.Errorf("%s is no instruction that is known; %s", v.text, wantOpcode(in.Op))
	}
	if len(in.Mods) != known.mods || len(in.Types) != known.types {
		return nil, fmt.Errorf("it has %d modifiers and %d types; want %d and %d, one for each part", len(in.Mods), len(in.Types), known.mods, known.types)
	}
	// Of several forms, the one that fits furthest has the complaint that counts.
	var worst error
	best := -2
	for _, s := range known.shapes {
		far, err := v.matchArgs(in, s)
		if err == nil {
			return s, nil
		}
		if far > best {
			best, worst = far, err
		}
	}
	return nil, worst
}

// wantOpcode lists the forms of an operation.
func wantOpcode(op string) string {
	var known []string
	for i := range forms {
		f := &forms[i]
		for _, opcode := range expand(f.opcode) {
			rest, ok := strings.CutPrefix(opcode, op)
			if ok && (rest == "" || rest[0] == '.') && !slices.Contains(known, f.opcode) {
				known = append(known, f.opcode)
			}
		}
	}
	if known == nil {
		return "see the table of forms"
	}
	if len(known) > 4 {
		known = append(known[:4], "...")
	}
	return "want " + strings.Join(known, " or ")
}

// matchArgs compares operands with those of a form. Where they differ it also
// returns how far they fit.
func (v *verifier) matchArgs(in *Inst, s *shape) (int, error) {
	if len(in.Args) != len(s.slots) {
		return -1, fmt.Errorf("it has %d operands; want %d (%s)", len(in.Args), len(s.slots), s.args)
	}
	for i, slot := range s.slots {
		ok := false
		for _, c := range slot {
			var err error
			if ok, err = v.fits(in, &in.Args[i], c); err != nil {
				return 2*i + 1, err
			}
			if ok {
				break
			}
		}
		if !ok {
			return 2 * i, fmt.Errorf("operand %d, %s, does not fit; want %s", i+1, in.Args[i].String(), wantSlot(in, slot))
		}
	}
	return 0, nil
}

// fits reports whether an operand is of the kind of a choice; the error says what
// is wrong with one that is.
func (v *verifier) fits(in *Inst, o *Operand, c choice) (bool, error) {
	switch c.kind {
	case regOfType:
		if o.Kind == RegOperand && holds(o.Reg.Class, in.Types[c.index]) {
			return true, v.declared(o.Reg)
		}
	case regOfClass:
		if o.Kind == RegOperand && o.Reg.Class == c.class {
			return true, v.declared(o.Reg)
		}
	case vecOfType, vecOfClass:
		return v.fitsVector(in, o, c)
	case literal:
		return isLiteral(o, in.Types[0]), nil
	case integer32:
		return isLiteral(o, B32), nil
	case natural:
		return o.Kind == IntOperand && o.Int >= 0 && o.Int < 1<<31, nil
	case exactly:
		return o.Kind == IntOperand && o.Int == int64(c.count), nil
	case boolean:
		return o.Kind == IntOperand && o.Int >= -1 && o.Int <= 1, nil
	case sharedAddr, globalAddr, paramAddr:
		return v.fitsAddress(in, o, c.kind)
	case labelName:
		if o.Kind == SymOperand {
			return true, v.label(o.Symbol)
		}
	case sharedName:
		if o.Kind == SymOperand {
			return true, v.shared(o.Symbol)
		}
	case special32, special64:
		return o.Kind == SpecOperand && specials[o.Symbol] == c.kind, nil
	}
	return false, nil
}

func (v *verifier) fitsVector(in *Inst, o *Operand, c choice) (bool, error) {
	if o.Kind != VecOperand || len(o.Vec) != c.count {
		return false, nil
	}
	for _, r := range o.Vec {
		if c.kind == vecOfClass && r.Class != c.class || c.kind == vecOfType && !holds(r.Class, in.Types[c.index]) {
			return false, nil
		}
	}
	for _, r := range o.Vec {
		if err := v.declared(r); err != nil {
			return true, err
		}
	}
	return true, nil
}

func (v *verifier) fitsAddress(in *Inst, o *Operand, kind choiceKind) (bool, error) {
	switch {
	case o.Kind != AddrOperand:
	case kind == paramAddr && o.Reg.Class == NoClass:
		return true, v.param(in, o)
	case kind == sharedAddr && o.Reg.Class == NoClass:
		return true, v.shared(o.Symbol)
	case kind == sharedAddr && o.Reg.Class == R, kind == globalAddr && o.Reg.Class == D:
		return true, v.address(o)
	}
	return false, nil
}

// holds reports whether registers of a class hold values of a type.
func holds(c Class, t Type) bool {
	if t.Bytes() == 1 {
		return c == H || c == R
	}
	return c != NoClass && c == t.Class()
}

// isLiteral reports whether an operand is a literal of a type, one that its bits
// hold with or without a sign.
func isLiteral(o *Operand, t Type) bool {
	switch t {
	case F32:
		return o.Kind == F32Operand && o.Int>>32 == 0
	case F64:
		return o.Kind == F64Operand
	case F16, BF16, F16x2, BF16x2, TF32, Pred, NoType:
		return false
	}
	bits := 8 * t.Bytes()
	return o.Kind == IntOperand && (bits == 64 || o.Int >= -1<<(bits-1) && o.Int < 1<<bits)
}

// wantSlot says in words what an operand may be.
func wantSlot(in *Inst, slot []choice) string {
	var words []string
	for _, c := range slot {
		words = append(words, wantChoice(in, c))
	}
	return strings.Join(words, " or ")
}

func wantChoice(in *Inst, c choice) string {
	class := func() string {
		switch {
		case c.kind == regOfClass || c.kind == vecOfClass:
			return c.class.String()
		case in.Types[c.index].Bytes() == 1:
			return "%h or %r"
		}
		return in.Types[c.index].Class().String()
	}
	switch c.kind {
	case regOfType, regOfClass:
		return "a register " + class()
	case vecOfType, vecOfClass:
		return fmt.Sprintf("a vector of %d registers %s", c.count, class())
	case literal:
		return "a literal ." + in.Types[0].String()
	case integer32:
		return "an integer of 32 bits"
	case natural:
		return "an integer from 0"
	case exactly:
		return strconv.Itoa(c.count)
	case boolean:
		return "0, 1 or -1"
	case sharedAddr:
		return "an address [%r+n] or [variable+n] of shared memory"
	case globalAddr:
		return "an address [%d+n] of global memory"
	case paramAddr:
		return "the [name] of a parameter"
	case labelName:
		return "a label"
	case sharedName:
		return "a shared variable"
	case special64:
		return "%clock64"
	}
	return "a special register of 32 bits, not %warpid"
}
