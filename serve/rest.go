package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pce-engine/pce/serve/oip"
	"github.com/pce-engine/pce/serve/page"
)

// headerLength is the header of the binary tensor extension: how much of the body is
// JSON.
const headerLength = "Inference-Header-Content-Length"

// routes are the paths that the server answers: REST, gRPC, metrics and the page. Any other
// path is a 404 in the protocol's form, and so is a path of another method. Tokens, hosts and
// origins are checked in front of it.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, answer func(r *http.Request) (any, error)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			x, err := answer(r)
			s.reply(w, r, x, err)
		})
	}
	// Of both checks the protocol's text names the one key, its schema the other.
	get("/v2/health/live", func(*http.Request) (any, error) {
		return map[string]bool{"live": true, "ready": s.models.ready() == nil}, nil
	})
	get("/v2/health/ready", func(*http.Request) (any, error) {
		return map[string]bool{"live": true, "ready": true}, s.models.ready()
	})
	get("/v2", func(*http.Request) (any, error) { return s.info(), nil })
	get("/v2/models", func(*http.Request) (any, error) { return s.models.index(false), nil })
	get("/v2/models/"+statsName, func(r *http.Request) (any, error) { return s.stats(r) })
	for _, path := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		get(path, func(r *http.Request) (any, error) {
			return s.describe(r.Context(), r.PathValue("model"), r.PathValue("version"))
		})
		get(path+"/ready", func(r *http.Request) (any, error) {
			return map[string]any{"name": r.PathValue("model"), "ready": true}, s.models.modelReady(r.PathValue("model"), r.PathValue("version"))
		})
		get(path+"/stats", func(r *http.Request) (any, error) { return s.stats(r) })
		mux.HandleFunc("POST "+path+"/infer", s.restInfer)
	}
	mux.HandleFunc("POST /v2/repository/index", s.restIndex)
	mux.HandleFunc("POST /v2/repository/models/{model}/{verb}", s.restControl)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		io.WriteString(w, s.metrics.Text(s.models.waiting()))
	})
	mux.HandleFunc("POST "+grpcService+"{method}", s.grpcCall)
	mux.HandleFunc("POST "+grpcHealth+"{method}", s.grpcCall)
	page.Routes(mux, s.opts.Token != "")
	unknown := func(w http.ResponseWriter, r *http.Request) {
		if isGRPC(r) {
			writeStatus(w, grpcUnimplemented, noMethod(r))
			return
		}
		s.refuse(w, r, fail(ErrModel, "%s is not a path of this server; GET /v2 says what it is", clip(r.URL.Path)))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/" {
				s.refuse(w, r, fail(ErrModel, "%s %s; this server has it with %s", clip(r.Method), clip(r.URL.Path), method))
				return
			}
		}
		unknown(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !tidy(r.URL.EscapedPath()) { // the multiplexer would redirect it
			unknown(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// tidy reports whether a path has neither dots nor slashes too many.
func tidy(p string) bool {
	return p == "*" || p == "/" || path.Clean(p) == strings.TrimSuffix(p, "/")
}

// reply writes a small answer.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, x any, err error) {
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	text, err := json.Marshal(x)
	if err != nil {
		s.refuse(w, r, fail(ErrInternal, "%v", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// refuse writes an error in the form that the client reads.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, code := statusOf(err)
	if isGRPC(r) {
		writeStatus(w, code, err)
		return
	}
	if after := retryAfter(err); after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	text, _ := json.Marshal(map[string]string{"error": err.Error()}) // strings always have a form
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(text)
}

func (s *Server) stats(r *http.Request) (any, error) {
	list, err := s.statistics(r.Context(), r.PathValue("model"), r.PathValue("version"))
	return map[string]any{"model_stats": list}, err
}

// restInfer answers POST .../infer. A name that is not served, and a queue that is full, refuse before the body is read; bytes
// of the body, and of the answer until a slow client has read it, are reserved. Outputs are
// binary where the request says so.
func (s *Server) restInfer(w http.ResponseWriter, r *http.Request) {
	model := r.PathValue("model")
	if _, err := s.models.find(model); err != nil { // before a body is read and takes memory for nothing
		s.count(err)
		s.refuse(w, r, err)
		return
	}
	if err := s.models.full(model, r.ContentLength); err != nil {
		s.refuse(w, r, err)
		return
	}
	body, err := s.body(w, r)
	defer body.done()
	if err == nil {
		err = s.enter()
	}
	if err != nil {
		s.count(err)
		s.refuse(w, r, err)
		return
	}
	defer s.leave()
	var req *oip.Request
	resp, err := s.infer(r.Context(), model, body, true, func(reserve oip.Reserve) (*oip.Request, error) {
		var err error
		req, err = s.restRequest(r, body.bytes, reserve)
		return req, err
	})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	body.answered = true
	buffer, _ := s.answers.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	out, header := resp.AppendJSON(slices.Grow((*buffer)[:0], resp.JSONBytes()), func(name string) bool {
		for _, o := range req.Outputs {
			if o.Name == name {
				if b, ok := o.Params["binary_data"].(bool); ok {
					return b
				}
			}
		}
		b, _ := req.Params["binary_data_output"].(bool)
		return b
	})
	if err := body.hold(len(out)); err != nil {
		s.refuse(w, r, err)
		return
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	if header < len(out) {
		h["Content-Type"] = binaryType
		h.Set(headerLength, strconv.Itoa(header))
	}
	if len(out) > smallAnswer {
		h.Set("Content-Length", strconv.Itoa(len(out)))
	}
	w.Write(out)
	if cap(out) <= mostSpare { // Write has copied it
		*buffer = out
		s.answers.Put(buffer)
	}
}

// smallAnswer is what net/http buffers: it then counts the bytes itself, and allocates nothing for the header.
const smallAnswer = 2048

// Content types of answers, which all of them share.
var (
	jsonType   = []string{"application/json"}
	binaryType = []string{"application/octet-stream"}
)

// count counts a request that was refused before it reached a model.
func (s *Server) count(err error) {
	status, _ := statusOf(err)
	s.metrics.Refused(status)
}

func (s *Server) restRequest(r *http.Request, body []byte, reserve oip.Reserve) (*oip.Request, error) {
	header := len(body)
	if text := r.Header[headerLength]; len(text) > 0 && text[0] != "" { // net/http's form of the name, which Get would make again
		n, err := strconv.Atoi(text[0])
		if err != nil {
			return nil, fail(ErrRequest, "%s: %q; want the bytes of JSON", headerLength, clip(text[0]))
		}
		header = n
	}
	req, err := oip.DecodeJSON(body, header, s.opts.MaxDepth, reserve)
	if err != nil {
		return nil, err
	}
	req.Model, req.Version = r.PathValue("model"), r.PathValue("version")
	return req, nil
}

// firstRead is what is allocated for a body on the strength of its stated length;
// the rest follows what has come.
const firstRead = 64 << 10

// mostSpare is the capacity of a buffer beyond which it is not kept for other bodies.
const mostSpare = 1 << 20

// requestBody is a request's body, and the memory that it and later its answer take.
type requestBody struct {
	server   *Server
	bytes    []byte
	reserved int64
	answer   int64 // reserved until a slow client has read it
	answered bool  // nothing reads bytes any more, so that another body may take them
}

// done gives the memory back; it is to be called in any case.
func (m *requestBody) done() {
	m.server.metrics.Pending.Add(-m.reserved - m.answer)
	if n := cap(m.bytes); m.answered && n > 0 && n <= mostSpare {
		m.server.bodies.Put(&m.bytes)
	}
}

// hold accounts for an answer of that many bytes until a slow client has read it. What was reserved for it before the model ran has room
// for its numbers; names and parameters may be longer than most are.
func (m *requestBody) hold(bytes int) error {
	more := int64(bytes) - m.answer
	if more <= 0 {
		return nil
	}
	if err := m.server.reserve(more, m.reserved+m.answer); err != nil {
		return err
	}
	m.answer += more
	return nil
}

// grow makes room for size bytes or more, and accounts for them.
func (m *requestBody) grow(size int64) error {
	var bytes []byte
	if m.bytes == nil {
		if b, ok := m.server.bodies.Get().(*[]byte); ok && int64(cap(*b)) >= size {
			bytes, size = (*b)[:0], int64(cap(*b))
		}
	}
	if err := m.server.reserve(size-m.reserved, m.reserved); err != nil {
		return err
	}
	if m.reserved = size; bytes == nil {
		bytes = make([]byte, 0, size)
	}
	m.bytes = append(bytes, m.bytes...)
	return nil
}

// body reads a request's body within the limits, and reserves its bytes as it grows: a client
// that announces much and sends little takes little. The caller calls done, also after an
// error.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (*requestBody, error) {
	m := &requestBody{server: s}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return m, fail(ErrRequest, "Content-Encoding %q; send the body as it is", clip(enc))
	}
	tooLarge := func() error {
		if r.ProtoMajor < 2 { // the rest is not read; of HTTP/2 only the stream ends, as its connection has other requests
			w.Header().Set("Connection", "close")
		}
		return fail(ErrTooLarge, "the body has more than %d bytes; send fewer rows, or raise the server's limit", s.opts.MaxBody)
	}
	if r.ContentLength > s.opts.MaxBody {
		return m, tooLarge()
	}
	size := int64(firstRead)
	if r.ContentLength >= 0 && r.ContentLength < size {
		size = r.ContentLength
	}
	for {
		if err := m.grow(size + 1); err != nil {
			return m, err
		}
		for len(m.bytes) < cap(m.bytes) {
			n, err := r.Body.Read(m.bytes[len(m.bytes):cap(m.bytes)])
			m.bytes = m.bytes[:len(m.bytes)+n]
			if int64(len(m.bytes)) > s.opts.MaxBody {
				return m, tooLarge()
			}
			if errors.Is(err, io.EOF) {
				return m, nil
			}
			if err != nil {
				return m, unread(r, err)
			}
		}
		size = min(2*size, s.opts.MaxBody)
		if r.ContentLength >= 0 {
			size = min(size, r.ContentLength)
		}
		size = max(size, int64(len(m.bytes))) // one more byte tells whether it is the end
	}
}

// unread says why a body could not be read. A client that closes the connection shows as an early end, as a reset, or,
// where the connection has other requests, by the context.
func unread(r *http.Request, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fail(ErrLate, "the body did not come in time; send less at once, or over a faster connection")
	}
	if most := (*http.MaxBytesError)(nil); errors.As(err, &most) {
		return fail(ErrTooLarge, "the body has more than %d bytes", most.Limit)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || r.Context().Err() != nil {
		return fmt.Errorf("the body ends early: %w", context.Canceled)
	}
	return fail(ErrRequest, "the body cannot be read: %v", err)
}

// smallBody reads the body of a request that needs none, or little.
func smallBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err != nil {
		err = unread(r, err)
	}
	return body, err
}

// restIndex answers POST /v2/repository/index.
func (s *Server) restIndex(w http.ResponseWriter, r *http.Request) {
	body, err := smallBody(w, r)
	var ready bool
	if err == nil {
		ready, err = oip.DecodeIndexJSON(body, s.opts.MaxDepth)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.reply(w, r, s.models.index(ready), nil)
}

// restControl answers POST /v2/repository/models/M/load and unload.
func (s *Server) restControl(w http.ResponseWriter, r *http.Request) {
	verb := r.PathValue("verb")
	if verb != "load" && verb != "unload" {
		s.refuse(w, r, fail(ErrModel, "%s is not a path of this server; load and unload are", clip(r.URL.Path)))
		return
	}
	body, err := smallBody(w, r)
	if err == nil {
		err = oip.DecodeControlJSON(body, s.opts.MaxDepth)
	}
	if err == nil {
		err = s.control(r.Context(), r.PathValue("model"), verb == "load")
	}
	s.reply(w, r, struct{}{}, err)
}
