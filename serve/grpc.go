package serve

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// Services that are spoken as gRPC.
const (
	grpcService = "/inference.GRPCInferenceService/"
	grpcHealth  = "/grpc.health.v1.Health/"
)

// isGRPC reports whether a request is a call of gRPC.
func isGRPC(r *http.Request) bool {
	t := r.Header.Get("Content-Type")
	return t == "application/grpc" || strings.HasPrefix(t, "application/grpc+") || strings.HasPrefix(t, "application/grpc;")
}

// writeStatus writes a gRPC status without a message.
func writeStatus(w http.ResponseWriter, code int, err error) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(code))
	h.Set("Grpc-Accept-Encoding", "identity")
	if err != nil {
		h.Set("Grpc-Message", percent(short(err.Error())))
		if after := retryAfter(err); after > 0 {
			h.Set("Grpc-Retry-Pushback-Ms", strconv.Itoa(1000*after))
		}
	}
	w.WriteHeader(http.StatusOK)
}

// mostMessage is how many bytes of a message go into a header, where each may take three. Many clients refuse headers of more than
// 8 KiB in all, and then show that in place of the code and the message.
const mostMessage = 1 << 10

// short cuts a message for a header.
func short(text string) string {
	if len(text) <= mostMessage {
		return text
	}
	return strings.ToValidUTF8(text[:mostMessage], "") + "..."
}

// percent encodes a message as gRPC wants it in a header.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// grpcCall answers a unary call. The limits hold as for REST: of inference, bytes are reserved before the
// body is read, and those of the answer before it is written; other calls are small, and answered however much is asked, as those that
// look at the server's health are. Failures after the headers of a
// gRPC call are told in its status; a request that is not gRPC gets 415.
func (s *Server) grpcCall(w http.ResponseWriter, r *http.Request) {
	if !isGRPC(r) {
		w.Header().Set("Accept-Post", "application/grpc, application/grpc+proto")
		http.Error(w, "gRPC alone is spoken at this path", http.StatusUnsupportedMediaType)
		return
	}
	infer := isInference(r)
	refuse := func(err error) {
		if infer {
			s.count(err)
		}
		s.refuse(w, r, err)
	}
	ctx, cancel, err := grpcContext(r)
	if err != nil {
		refuse(err)
		return
	}
	defer cancel()
	body := &requestBody{server: s}
	if infer {
		body, err = s.body(w, r)
	} else {
		body.bytes, err = smallBody(w, r)
	}
	defer body.done()
	var message []byte
	if err == nil {
		message, err = unframe(r, body.bytes)
	}
	if err == nil && infer {
		err = s.enter()
	}
	if err != nil {
		refuse(err)
		return
	}
	if infer {
		defer s.leave()
	}
	out := make([]byte, 5, 512) // the frame's head
	out, known, err := s.grpcAnswer(ctx, body, strings.TrimSuffix(r.URL.Path, r.PathValue("method")), r.PathValue("method"), message, out)
	if !known {
		writeStatus(w, grpcUnimplemented, noMethod(r))
		return
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	body.answered = true
	binary.BigEndian.PutUint32(out[1:], uint32(len(out)-5))
	if infer {
		if err := body.hold(len(out)); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Trailer", "Grpc-Status")
	w.Write(out)
	h.Set("Grpc-Status", strconv.Itoa(grpcOK))
}

// noMethod says that a call is of a method, or a service, that the server does not have. Its code tells clients of gRPC to do
// without, as those that ask for reflection first.
func noMethod(r *http.Request) error {
	return fmt.Errorf("%s is not a method of this server; call one of inference.GRPCInferenceService or grpc.health.v1.Health", clip(r.URL.Path))
}

// grpcContext bounds a call as its header says.
func grpcContext(r *http.Request) (context.Context, context.CancelFunc, error) {
	text := r.Header.Get("Grpc-Timeout")
	if text == "" {
		return r.Context(), func() {}, nil
	}
	unit := map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': 1}[text[len(text)-1]]
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	if err != nil || unit == 0 || len(text) > 9 {
		return nil, nil, fail(ErrRequest, "grpc-timeout %q; want up to 8 digits and one of H, M, S, m, u, n", clip(text))
	}
	if n > uint64(1<<62/int64(unit)) {
		return r.Context(), func() {}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(n)*unit)
	return ctx, cancel, nil
}

// unframe returns the one message of a body.
func unframe(r *http.Request, body []byte) ([]byte, error) {
	switch {
	case len(body) < 5:
		return nil, fail(ErrRequest, "the call has no message")
	case body[0] != 0:
		return nil, fail(errCompressed, "the message is compressed as %q; send it as it is", clip(r.Header.Get("Grpc-Encoding")))
	case uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-5):
		return nil, fail(ErrRequest, "the call has %d bytes, its message %d; send one message", len(body)-5, binary.BigEndian.Uint32(body[1:]))
	}
	return body[5:], nil
}

// grpcAnswer appends the answer of a method to dst; known is false for a method that the server
// does not have. The methods are those of inference.GRPCInferenceService, and Check of
// grpc.health.v1.
func (s *Server) grpcAnswer(ctx context.Context, body *requestBody, service, method string, message, dst []byte) (out []byte, known bool, err error) {
	if service == grpcHealth {
		if method != "Check" {
			return nil, false, nil
		}
		name, err := oip.DecodeHealth(message)
		if err == nil && name != "" && name != strings.Trim(grpcService, "/") {
			err = fail(ErrModel, "service %q", clip(name))
		}
		return oip.AppendHealth(dst, s.models.ready() == nil), true, err
	}
	switch method {
	case "ServerLive":
		return oip.AppendFlag(dst, true), true, nil
	case "ServerReady":
		return oip.AppendFlag(dst, s.models.ready() == nil), true, nil
	case "ServerMetadata":
		return s.info().AppendProto(dst), true, nil
	case "ModelReady", "ModelMetadata", "ModelStatistics":
		ref, err := oip.DecodeModelRef(message)
		if err != nil {
			return nil, true, err
		}
		out, err := s.grpcModel(ctx, method, ref, dst)
		return out, true, err
	case "ModelInfer":
		resp, err := s.infer(ctx, oip.ModelOf(message), body, false, func(reserve oip.Reserve) (*oip.Request, error) { return oip.DecodeProto(message, reserve) })
		if err != nil {
			return nil, true, err
		}
		return resp.AppendProto(dst), true, nil
	case "RepositoryIndex":
		ref, err := oip.DecodeRepositoryIndex(message)
		return oip.AppendIndex(dst, s.models.index(ref.Ready)), true, err
	case "RepositoryModelLoad", "RepositoryModelUnload":
		ref, err := oip.DecodeRepositoryRef(message)
		if err == nil {
			err = s.control(ctx, ref.Model, method == "RepositoryModelLoad")
		}
		return dst, true, err
	}
	return nil, false, nil
}

func (s *Server) grpcModel(ctx context.Context, method string, ref oip.ModelRef, dst []byte) ([]byte, error) {
	switch method {
	case "ModelReady":
		err := s.models.modelReady(ref.Name, ref.Version)
		if status, _ := statusOf(err); status == http.StatusServiceUnavailable {
			return oip.AppendFlag(dst, false), nil
		}
		return oip.AppendFlag(dst, true), err
	case "ModelMetadata":
		info, err := s.describe(ctx, ref.Name, ref.Version)
		if err != nil {
			return nil, err
		}
		return info.AppendProto(dst), nil
	}
	list, err := s.statistics(ctx, ref.Name, ref.Version)
	return oip.AppendStatistics(dst, list), err
}
