package x86

import (
	"encoding/binary"

	"github.com/pce-engine/pce/kernels/x86/asm"
)

// reg is a virtual register: what a node computes, before it has a place in the machine.
type reg int32

const none reg = 0

// kind is what a node does.
type kind uint8

const (
	compute  kind = iota // an instruction
	fma                  // args[0]·args[1] + args[2], by whichever form wastes no move
	fetch                // loads from a table in the pool, by the indices args[0] of some lanes, or by those that are bytes at the pointer
	pair                 // looks up in the vectors args[1] and args[2] as one table, at the indices args[0]
	patch                // looks up in the vector num of the pool, at the indices args[1], in the lanes of args[2], and keeps the others of args[0]
	merge                // has the bits of args[0] where args[2] is set, else those of args[1]
	pick                 // loads elements of num bytes of lanes imm and on, at the pointer plus the lane's rows plus the indices args[0]
	spread               // stores elements args[1] of num bytes of lanes imm and on likewise
	scatter              // in stores args[1] at the pointer plus the distances args[0], of the lanes of args[2], which may be none
	gather               // in loads lanes from memory at the distances args[0], from the pool or the pointer
	pointer              // the general register AX = the pointer number imm, plus the row times stride
	variable             // gives dst a place in the frame
	put                  // stores args[0] in the place of dst
	guard                // runs body if args[0] holds in any lane
	loop                 // runs body while args[0], a variable, holds in any lane, at most turns times
)

// node is a step of a block.
type node struct {
	kind  kind
	w     asm.Width
	imm   uint8
	hasAt bool  // the r/m operand is memory at the pointer AX
	table int32 // where the table of a fetch is in the pool
	in    *asm.Inst
	dst   reg
	args  [3]reg
	at    asm.Mem
	num   int32 // the pointer, the turns of a loop, or the bytes that a fetch loads for a lane
	side  int32 // the distance of rows in bytes, of a pointer
	body  *block

	// Set by the allocation: where the block reads each argument next, and the result first.
	next  [3]int32
	first int32
	dead  bool
}

// block is a list of nodes that run one after the other.
type block struct {
	id    int32
	nodes []node
	// outer lists the registers of blocks around it that the block reads or puts values in, and
	// outerNext where the block around it reads them next.
	outer     []reg
	outerNext []int32
}

// info is what is known of a virtual register.
type info struct {
	owner int32 // the block that defines it
	pool  int32 // where a constant is in the pool; -1: not a constant
	each  uint8 // of a constant: the bytes of the one element for all lanes that it is; 0: it is a whole vector
	mask  bool  // it is in a mask register
}

// code collects nodes, constants and pointers.
type code struct {
	regs   []info
	blocks int32
	open   []*block // innermost last
	pool   []byte
	consts map[string]reg
	each   map[element]reg  // constants of one element for all lanes
	tables map[[2]int]int32 // where one or two tables of the module are in the pool
	// known holds nodes that can be used again in their block and those within; undo lists its keys by
	// block, but for outermost ones, with which all are forgotten.
	known map[node]reg
	undo  [][]node
	cost  []int64 // of the open blocks, in instructions of all turns
}

func newCode() *code {
	return &code{regs: make([]info, 1), consts: map[string]reg{}, each: map[element]reg{}, tables: map[[2]int]int32{}, known: map[node]reg{}}
}

func (c *code) enter() *block {
	c.blocks++
	b := &block{id: c.blocks}
	c.open, c.undo, c.cost = append(c.open, b), append(c.undo, nil), append(c.cost, 0)
	return b
}

// leave closes the innermost block and returns it with its cost.
func (c *code) leave() (*block, int64) {
	n := len(c.open) - 1
	b, cost := c.open[n], c.cost[n]
	if n == 0 {
		clear(c.known)
	}
	for _, k := range c.undo[n] {
		delete(c.known, k)
	}
	c.open, c.undo, c.cost = c.open[:n], c.undo[:n], c.cost[:n]
	seen := map[reg]bool{}
	note := func(r reg) {
		if r != none && c.regs[r].owner != b.id && c.regs[r].pool < 0 && !seen[r] {
			seen[r] = true
			b.outer = append(b.outer, r)
		}
	}
	for i := range b.nodes {
		n := &b.nodes[i]
		for _, r := range n.args {
			note(r)
		}
		if n.kind == put {
			note(n.dst)
		}
		if n.body != nil {
			for _, r := range n.body.outer {
				note(r)
			}
		}
	}
	return b, cost
}

func (c *code) reg(pool int32) reg {
	owner := int32(0)
	if len(c.open) > 0 {
		owner = c.open[len(c.open)-1].id
	}
	c.regs = append(c.regs, info{owner: owner, pool: pool})
	return reg(len(c.regs) - 1)
}

// add appends a node, whose cost is that of an instruction unless it has a body.
func (c *code) add(n node) {
	b := c.open[len(c.open)-1]
	b.nodes = append(b.nodes, n)
	c.cost[len(c.cost)-1]++
}

// value appends a node with a result, or returns the result of an equal node.
func (c *code) value(n node) reg {
	again := !n.hasAt && n.kind != fma // memory may change, and modules repeat no FMA that is worth a search
	if again {
		if r, ok := c.known[n]; ok {
			return r
		}
	}
	key := n
	n.dst = c.reg(-1)
	c.regs[n.dst].mask = n.in != nil && n.in.Masks()
	if again {
		c.known[key] = n.dst
		if n := len(c.undo) - 1; n > 0 {
			c.undo[n] = append(c.undo[n], key)
		}
	}
	c.add(n)
	return n.dst
}

// op appends an instruction on registers.
func (c *code) op(in *asm.Inst, w asm.Width, args ...reg) reg { return c.opImm(in, w, 0, args...) }

func (c *code) opImm(in *asm.Inst, w asm.Width, imm uint8, args ...reg) reg {
	n := node{in: in, w: w, imm: imm}
	copy(n.args[:], args)
	return c.value(n)
}

// opAt appends an instruction whose last operand is memory at the pointer.
func (c *code) opAt(in *asm.Inst, w asm.Width, imm uint8, at asm.Mem, args ...reg) reg {
	n := node{in: in, w: w, imm: imm, hasAt: true, at: at}
	copy(n.args[:], args)
	return c.value(n)
}

// storeAt appends an instruction that writes memory at the pointer.
func (c *code) storeAt(in *asm.Inst, w asm.Width, imm uint8, at asm.Mem, v reg) {
	c.add(node{in: in, w: w, imm: imm, hasAt: true, at: at, args: [3]reg{v}})
}

// variable returns a register with a place in the frame, which put fills.
func (c *code) variable(mask bool) reg {
	r := c.reg(-1)
	c.regs[r].mask = mask
	c.add(node{kind: variable, dst: r})
	return r
}

func (c *code) put(dst, v reg) { c.add(node{kind: put, dst: dst, args: [3]reg{v}}) }

// constant returns a register whose content is in the pool: a whole vector.
func (c *code) constant(bits []byte) reg {
	if r, ok := c.consts[string(bits)]; ok {
		return r
	}
	r := c.reg(c.reserve(bits))
	c.consts[string(bits)] = r
	return r
}

// element is a constant of one element for all lanes, or for mask registers.
type element struct {
	bits uint64
	size uint8 // in bytes
	mask bool
}

// element returns a register with an element in all lanes, which is in the pool once.
func (c *code) element(e element) reg {
	r, ok := c.each[e]
	if !ok {
		for len(c.pool)%int(e.size) != 0 {
			c.pool = append(c.pool, 0)
		}
		r = c.reg(int32(len(c.pool)))
		var bits [8]byte
		binary.LittleEndian.PutUint64(bits[:], e.bits)
		c.pool = append(c.pool, bits[:e.size]...)
		c.regs[r].mask = e.mask
		if !e.mask {
			c.regs[r].each = e.size
		}
		c.each[e] = r
	}
	return r
}

// reserve appends bytes to the pool and returns where they are.
func (c *code) reserve(b []byte) int32 {
	const align = 64
	at := (len(c.pool) + align - 1) &^ (align - 1)
	if len(b) <= 32 {
		at = (len(c.pool) + 31) &^ 31
	}
	c.pool = append(c.pool, make([]byte, at-len(c.pool))...)
	c.pool = append(c.pool, b...)
	return int32(at)
}
