package micro

// SingleSet holds the kernels of circuits in which every node is one unit. They run
// Rows rows of a batch at a time, one in each lane, through the whole circuit.
//
// A value is m·2^e with an exponent for each row: m is from 1 to 2, or 0, and e lies
// between Lost and Most. So nothing vanishes beside something larger, and a sum is
// as exact as float32 is. A vector of values is Rows mantissas and then Rows exponents;
// both are kept as the bits of 32-bit words.
//
// A circuit is a tape of groups, in an order in which operands come first. A group is
// some products, its operands, and some sums that all read these operands:
//
//	products, sums
//	for each product: leaves, nodes
//	    for each leaf: place in Tables, place in Codes, codes to count, place in Counts
//	    for each node: place in Values
//	for each sum: place in Values, place in Weights, place in Counts
//
// A product has at most SingleFactors factors. A leaf has a table of SingleCodes values,
// its mantissas and then its exponents. Place p of Values is place p/2 of Flows.
type SingleSet struct {
	Rows int

	// Forward sets the values of all sums. It adds up singleBatch operands as they come, and such
	// batches with compensation (Kahan's summation), so a sum of any length is as exact as that.
	Forward func(a *SingleArgs)

	// Backward sends the flows of the sums down, the last group first: with f the flow
	// into a sum s and t the value of its operand of weight w, the operand gets f·w·t/s.
	// It is added to the operand's count and to the flows of the nodes that the operand
	// multiplies; for each leaf with codes to count, the flow of rows that have a code
	// is added to the code's count. Flows into sums become 0 again. The order of the sums
	// over rows is the set's own.
	Backward func(a *SingleArgs)
}

const (
	// SingleFactors is the most factors of a product: the product of 60 mantissas and that
	// of a weight is below 2^61, and a float32 holds the sum of 2^60 of these.
	SingleFactors = 60
	// SingleCodes is the number of values of a leaf's table.
	SingleCodes = 4
)

// SingleArgs are the arguments of the kernels of a SingleSet.
type SingleArgs struct {
	Tape    *int32
	Starts  *int32 // where the groups of the call begin in the tape
	Groups  int
	Values  *uint32  // [vector][2][Rows]
	Flows   *float32 // [vector][Rows]
	Tables  *uint32  // [leaf][2][SingleCodes]
	Codes   *uint32  // [column][Rows], below SingleCodes
	Weights *uint32  // [weight][2]: mantissa and exponent
	Counts  *float32
	Scratch *uint32 // [operand of a group][3][Rows]
	Far     bool    // exponents may reach Lost or Most; else kernels may take their sums as they are
}
