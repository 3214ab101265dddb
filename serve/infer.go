package serve

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/cells"
	"github.com/pce-engine/pce/serve/oip"
)

// infer answers a request for a model. decode is called once there is room for the request's rows. The memory of the answer,
// as JSON or not, is reserved before the model runs, and left to body.
func (s *Server) infer(ctx context.Context, model string, body *requestBody, json bool, decode func(oip.Reserve) (*oip.Request, error)) (resp *oip.Response, err error) {
	call := call{server: s, body: body, json: json}
	call.job.seen = time.Now()
	if call.place, err = s.models.admit(model, len(body.bytes)); err != nil {
		return nil, err
	}
	defer call.place.end()
	defer func() { s.metrics.Pending.Add(-call.reserved) }()
	req, err := decode(call.take)
	if err != nil {
		s.count(err)
		return nil, err
	}
	timeout, err := s.timeout(req.Params)
	if err != nil {
		s.count(err)
		return nil, err
	}
	call.job.ctx, call.job.end = ctx, call.job.seen.Add(timeout)
	if err := call.acquire(req); err != nil {
		return nil, err
	}
	defer call.release()
	v := call.version
	name := ""
	defer func() {
		status, _ := statusOf(err)
		v.stats.Request(name, status, call.rows*call.repeat, time.Since(call.job.seen), call.queued, call.compute)
	}()
	i, ok := v.query(text(req.Params["query"]))
	if !ok {
		return nil, fail(ErrRequest, "parameters: query %q; model %q answers %v", shown(req.Params["query"]), v.name, queryNames(v.queries))
	}
	call.query, call.job.query, name = &v.queries[i], i, v.queries[i].Name
	if err := call.prepare(); err != nil {
		return nil, err
	}
	read := time.Since(call.job.seen)
	if call.rows > 0 {
		if err := call.run(); err != nil {
			return nil, err
		}
	}
	written := time.Now()
	if resp, err = call.response(); err != nil {
		return nil, err
	}
	call.reserved -= call.reply
	body.answer = call.reply
	v.stats.Tensors(read, time.Since(written))
	return resp, nil
}

func queryNames(list []Query) []string {
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// text returns a parameter that is a string, and something that is not the name of
// a query for one of another type.
func text(x any) string {
	switch x := x.(type) {
	case nil:
		return ""
	case string:
		if x == "" {
			return "\x00"
		}
		return x
	}
	return "\x00"
}

// timeout is how long a request may take: what its parameter timeout says, in
// microseconds, at most Options.Timeout.
func (s *Server) timeout(p oip.Params) (time.Duration, error) {
	x, ok := p["timeout"]
	if !ok {
		return s.opts.Timeout, nil
	}
	n, ok := convert(x, int64(0))
	us, _ := n.(int64)
	if !ok || us < 0 {
		return 0, fail(ErrRequest, "parameters: timeout is %s; want microseconds", shown(x))
	}
	if us == 0 || us > s.opts.Timeout.Microseconds() {
		return s.opts.Timeout, nil
	}
	return time.Duration(us) * time.Microsecond, nil
}

// call is a request for a query of a version.
type call struct {
	server   *Server
	body     *requestBody
	version  *version
	other    *version // that a parameter names; nil: none
	query    *Query
	req      *oip.Request
	place    admission
	rows     int // of the request
	repeat   int // rows of the model for each of them
	reserved int64
	json     bool        // the form of the answer
	reply    int64       // bytes of the answer
	x        *oip.Tensor // nil: none
	mask     []byte      // of observed; nil: all cells are
	answers  answers
	job      job

	// Set once the job is done: a batch may change those of a job that was abandoned.
	queued, compute time.Duration
	answer          oip.Params

	// Memory of the job and the answer where a query gives one tensor, as most do.
	values [1][]float64
	wants  [1]bool
	resp   oip.Response
	tensor [1]oip.Tensor
	shape  [2]int64
}

// prepare checks everything that can be checked before the model runs, and makes the job:
// parameters, outputs, shapes, then the cost, and only after that the memory for rows and
// results. The error names the tensor and the field.
func (c *call) prepare() error {
	if err := c.params(); err != nil {
		return err
	}
	if err := c.wanted(); err != nil {
		return err
	}
	x, observed, further, err := c.tensors()
	if err != nil {
		return err
	}
	if c.x = x; observed != nil {
		c.mask = observed.Raw
	}
	perRow, err := c.plan()
	if err != nil {
		return err
	}
	if err := c.cost(further, perRow); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	if len(further) > 0 {
		c.job.inputs = make([][]float64, len(further))
	}
	for i, t := range further {
		if t != nil {
			c.job.inputs[i] = cells.Floats(t)
		}
	}
	if c.query.Check != nil {
		if err := c.query.Check(c.rows, c.job.inputs); err != nil {
			return fail(ErrRequest, "%v", err)
		}
	}
	for i, x := range c.job.inputs { // after the check, whose message has rows of the request
		if x != nil {
			c.job.inputs[i] = cells.RepeatNumbers(x, width(c.query.Inputs[i].Shape), c.repeat)
		}
	}
	if n := len(c.query.Outputs); n > len(c.values) {
		c.job.outputs, c.job.want = make([][]float64, n), make([]bool, n)
	} else {
		c.job.outputs, c.job.want = c.values[:n], c.wants[:n]
	}
	for _, k := range c.answers.places {
		if c.job.outputs[k] == nil {
			c.job.want[k] = true
			c.job.outputs[k] = make([]float64, c.rows*c.repeat*c.job.width(c.query, k))
		}
	}
	return nil
}

// read makes the rows of the job of x, or one without evidence: cells of a batch, or numbers
// where the query takes those.
func (c *call) read() error {
	columns := len(c.version.schema.Columns)
	if c.query.Numbers != "" {
		rows := nans(columns)
		if c.x != nil {
			var err error
			if rows, err = c.version.rows.Numbers(c.x, c.mask, c.query.Numbers); err != nil {
				return err
			}
		}
		c.job.rows = &dataset.Batch{Rows: c.rows * c.repeat}
		c.job.numbers = cells.RepeatNumbers(rows, columns, c.repeat)
		return nil
	}
	c.job.rows = c.version.batch(c.rows)
	if c.x != nil {
		if err := c.version.rows.Read(c.job.rows, c.x, c.mask); err != nil {
			return err
		}
	}
	c.job.rows = cells.Repeat(c.version.schema, c.job.rows, c.repeat)
	return nil
}

// tensors finds the inputs of the query among the request's and checks names, datatypes and
// shapes; further has those of query.Inputs in their order, nil for one that is left out. All
// must have the same number of rows, which it notes; a request without x is of one row where
// the query allows that.
func (c *call) tensors() (x, observed *oip.Tensor, further []*oip.Tensor, err error) {
	further = make([]*oip.Tensor, len(c.query.Inputs))
	columns := int64(len(c.version.schema.Columns))
	if c.rows = -1; c.query.Whole {
		c.rows = 1
		if len(c.req.Inputs) > 0 {
			err = fail(ErrRequest, "input %q: name: query %q is about the model and takes none; leave it out", clip(c.req.Inputs[0].Name), c.query.Name)
		}
		return nil, nil, nil, err
	}
	for i := range c.req.Inputs {
		t := &c.req.Inputs[i]
		slot, shape := &x, []int64{columns}
		switch t.Name {
		case "x":
		case "observed":
			if slot = &observed; t.Datatype != oip.Bool {
				return nil, nil, nil, fail(ErrRequest, "input %q: datatype: %s; want BOOL", t.Name, t.Datatype)
			}
		default:
			k := -1
			for j := range c.query.Inputs {
				if c.query.Inputs[j].Name == t.Name {
					k = j
				}
			}
			if k < 0 {
				return nil, nil, nil, fail(ErrRequest, "input %q: name: query %q takes %v", clip(t.Name), c.query.Name, c.inputNames())
			}
			if t.Datatype == oip.Bytes {
				return nil, nil, nil, fail(ErrRequest, "input %q: datatype: BYTES; want numbers, such as %s", t.Name, c.query.Inputs[k].Datatype)
			}
			slot, shape = &further[k], c.query.Inputs[k].Shape
		}
		if *slot != nil {
			return nil, nil, nil, fail(ErrRequest, "input %q: given twice", t.Name)
		}
		*slot = t
		for key := range t.Params {
			if key != "binary_data_size" {
				return nil, nil, nil, fail(ErrRequest, "input %q: parameters: %q is not known", t.Name, clip(key))
			}
		}
		if !rowsOf(t.Shape, shape) {
			return nil, nil, nil, fail(ErrRequest, "input %q: shape: %v; want [N%s]", t.Name, t.Shape, dims(shape))
		}
		if n := t.Shape[0]; c.rows >= 0 && int64(c.rows) != n {
			return nil, nil, nil, fail(ErrRequest, "input %q: shape: %d rows; the input before it has %d", t.Name, n, c.rows)
		} else if n > math.MaxInt32 {
			return nil, nil, nil, fail(ErrTooLarge, "input %q: shape: %d rows", t.Name, n)
		} else {
			c.rows = int(n)
		}
	}
	if x == nil && (observed != nil || !c.query.RowsOptional) {
		return nil, nil, nil, fail(ErrRequest, `input "x": missing; query %q takes %v`, c.query.Name, c.inputNames())
	}
	for i, t := range further {
		if t == nil && !c.query.Inputs[i].Optional {
			return nil, nil, nil, fail(ErrRequest, "input %q: missing; query %q takes %v", c.query.Inputs[i].Name, c.query.Name, c.inputNames())
		}
	}
	if c.rows < 0 {
		c.rows = 1
	}
	return x, observed, further, nil
}

// rowsOf reports whether a shape is [N, row...].
func rowsOf(shape, row []int64) bool {
	if len(shape) != len(row)+1 {
		return false
	}
	for i, d := range row {
		if shape[i+1] != d {
			return false
		}
	}
	return true
}

func dims(row []int64) string {
	s := ""
	for _, d := range row {
		s += fmt.Sprintf(" %d", d)
	}
	return s
}

func (c *call) inputNames() []string {
	names := []string{"x", "observed"}
	for i := range c.query.Inputs {
		names = append(names, c.query.Inputs[i].Name)
	}
	return names
}

// fewer is what to do about a request that asks for too much. Of a query that sees each row several times, rows
// are as many as a parameter says also where the request has one row, or none. One row of another query cannot be fewer; its
// parameters may make it less work.
func (c *call) fewer() string {
	switch {
	case c.query.Whole:
		return "choose other parameters, or ask without a server"
	case c.repeat > 1 && c.rows > 1:
		return "send fewer rows, or a smaller " + c.query.Repeat
	case c.repeat > 1:
		return "send a smaller " + c.query.Repeat
	case c.rows == 1 && c.query.Plan != nil:
		return "one row alone has more; choose other parameters, or ask without a server"
	case c.rows == 1:
		return "one row alone has more; ask without a server"
	}
	return "send fewer rows"
}

// cost refuses what is beyond a limit before memory is taken and work is done, given the
// further inputs, nil for those that the request lacks, and the operations of a row.
func (c *call) cost(inputs []*oip.Tensor, perRow int64) error {
	o := &c.server.opts
	rows := float64(c.rows) * float64(c.repeat)
	columns := float64(len(c.version.schema.Columns))
	outs, kept := 0.0, 0.0
	if cells := rows * columns; cells > float64(o.MaxCells) {
		return fail(ErrTooLarge, "%.0f rows of %.0f columns have %.0f cells, %d may be asked for at once; %s", rows, columns, cells, o.MaxCells, c.fewer())
	}
	for _, k := range c.answers.places {
		n := float64(c.job.width(c.query, k))
		if outs += n; rows*n > float64(o.MaxCells) {
			return fail(ErrTooLarge, "output %q of %.0f rows has %.0f elements, %d may be asked for at once; %s", c.query.Outputs[k].Name, rows, rows*n, o.MaxCells, c.fewer())
		}
		if c.query.Outputs[k].Completes && c.x != nil {
			kept += float64(c.rows) * columns
		}
	}
	if flops := rows * float64(perRow); flops > o.MaxFlops {
		of := fmt.Sprintf(" of %.0f rows", rows)
		if c.query.Whole {
			of = ""
		}
		return fail(ErrTooLarge, "query %q%s takes %.3g operations, %.3g may be asked for at once; %s", c.query.Name, of, flops, o.MaxFlops, c.fewer())
	}
	further := 0.0
	for i, t := range inputs {
		if t != nil {
			further += float64(width(c.query.Inputs[i].Shape))
		}
	}
	// Cells take 2 or 4 bytes; numbers 8, also those that an answer keeps, and outputs again in the answer.
	cell := 4.0
	if c.query.Numbers != "" {
		cell = 8
	}
	bytes := rows*(cell*columns+8*further+16*outs) + 8*kept
	if c.repeat > 1 {
		bytes += float64(c.rows) * cell * columns
	}
	if bytes > float64(o.MaxBytes) {
		return fail(ErrTooLarge, "%.0f rows take %.0f bytes, %d may be asked for at once; %s", rows, bytes, o.MaxBytes, c.fewer())
	}
	// The answer is written when the rest is not needed any more.
	c.reply = oip.HeadBytes
	for i, k := range c.answers.places {
		d := c.answers.types[i]
		raw := c.rows * c.repeat * c.job.width(c.query, k) * d.Size()
		if c.json {
			raw = d.JSONBytes(raw)
		}
		c.reply += int64(raw)
	}
	return c.take(max(int64(bytes), c.reply))
}

// take accounts for memory until the call is over.
func (c *call) take(bytes int64) error {
	if err := c.server.reserve(bytes, c.body.reserved+c.reserved); err != nil {
		return err
	}
	c.reserved += bytes
	return nil
}

// run waits for the job's answer. When its time is up, what has not begun is not begun.
func (c *call) run() error {
	j, s := &c.job, c.server
	j.asked = c.rows
	if err := j.late(time.Now()); err != nil {
		return err
	}
	if err := c.version.lane.submit(c.version, j, &c.place); err != nil {
		return err
	}
	// A timer that is used again costs less than a context with a deadline.
	timer, _ := s.timers.Get().(*time.Timer)
	if timer == nil {
		timer = time.NewTimer(time.Until(j.end))
	} else {
		timer.Reset(time.Until(j.end))
	}
	defer func() {
		timer.Stop()
		s.timers.Put(timer)
	}()
	select {
	case <-j.done:
	case <-j.ctx.Done():
		c.version.lane.abandon(j)
		return late(j.ctx.Err())
	case <-timer.C:
		c.version.lane.abandon(j)
		return late(context.DeadlineExceeded)
	}
	if j.numbers == nil {
		c.version.spare.Put(j.rows) // no batch has it any more
	}
	c.queued, c.compute, c.answer = j.queued, j.compute, j.answer
	if j.err != nil {
		if err := j.late(time.Now()); err != nil {
			return err
		}
	}
	return j.err
}

func late(err error) error {
	if err == context.Canceled {
		return err
	}
	return fail(ErrLate, "the answer was not there in time; ask for fewer rows or allow more")
}

// response turns results into tensors of the datatypes that were asked for. A number that an
// integer datatype does not hold is an error of the request. Seeds that the server drew are
// among the parameters.
func (c *call) response() (*oip.Response, error) {
	resp := &c.resp
	*resp = oip.Response{Model: c.version.name, Version: c.version.number, ID: c.req.ID, Params: c.answer, Outputs: c.tensor[:0]}
	for _, p := range c.query.Params {
		if p.Default == nil {
			if resp.Params = cloned(resp.Params); resp.Params[p.Name] == nil {
				resp.Params[p.Name] = c.job.params[p.Name]
			}
		}
	}
	for i, k := range c.answers.places {
		out := &c.query.Outputs[k]
		t := oip.Tensor{Name: out.Name, Datatype: c.answers.types[i]}
		if i == 0 {
			t.Shape = c.shape[:0]
		}
		t.Shape = append(t.Shape, int64(c.rows))
		if c.query.Repeat != "" {
			t.Shape = append(t.Shape, int64(c.repeat))
		}
		t.Shape = append(t.Shape, c.job.shape(c.query, k)...)
		if out.Completes && c.x != nil {
			c.version.rows.Keep(c.job.outputs[k], c.repeat, c.x, c.mask)
		}
		var err error
		if t.Raw, err = cells.Encode(c.job.outputs[k], t.Datatype); err != nil {
			return nil, fail(ErrRequest, "output %q: datatype: %v; ask for FP64", out.Name, err)
		}
		resp.Outputs = append(resp.Outputs, t)
	}
	return resp, nil
}

func cloned(p oip.Params) oip.Params {
	out := make(oip.Params, len(p)+1)
	for k, x := range p {
		out[k] = x
	}
	return out
}
