package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/pce-engine/pce/serve/page"
)

// guard lets requests through that may be here: those with a Host that is answered,
// from no other origin, and with the token, which health checks and the page's own files
// do not need.
func (s *Server) guard(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	policy := []string{"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
	noSniff, noReferrer, noStore := []string{"nosniff"}, []string{"no-referrer"}, []string{"no-store"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header() // the same values for every answer, which Header.Set would allocate
		h["X-Content-Type-Options"] = noSniff
		if r.Method != http.MethodPost { // what a browser shows, links from and keeps
			h["Content-Security-Policy"] = policy
			h["Referrer-Policy"] = noReferrer
			h["Cache-Control"] = noStore
		}
		err := s.host(r)
		if err == nil && origins.Check(r) != nil {
			err = fail(ErrForbidden, "pages of other origins may not send requests here")
		}
		if err == nil && s.opts.Token != "" && !open(r) && !s.authorized(r) {
			err = fail(ErrToken, "send the header Authorization: Bearer with the server's token")
		}
		if err != nil {
			if isInference(r) {
				s.count(err)
			}
			s.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isInference reports whether a request wants an answer of a model. Metrics count no others, whatever becomes of them.
func isInference(r *http.Request) bool {
	p := r.URL.Path
	return r.Method == http.MethodPost && (p == grpcService+"ModelInfer" || strings.HasPrefix(p, "/v2/models/") && strings.HasSuffix(p, "/infer"))
}

// host checks the name by which the client reached the server.
func (s *Server) host(r *http.Request) error {
	if s.opts.Hosts == nil {
		return nil
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if !slices.Contains(s.opts.Hosts, name) {
		return fail(ErrForbidden, "host %q; this server answers to %v", clip(r.Host), s.opts.Hosts)
	}
	return nil
}

// open reports whether a request needs no token: a health check of the server, or a file of the page.
func open(r *http.Request) bool {
	switch r.URL.Path {
	case "/v2/health/live", "/v2/health/ready", grpcHealth + "Check", grpcService + "ServerLive", grpcService + "ServerReady":
		return true
	}
	return page.Has(r.URL.Path)
}

// authorized compares tokens in a time that tells nothing of either.
func (s *Server) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1
}
