package cuda

// staging is pinned memory of the host that copies go through, so that they need not
// wait for what the card is doing.
type staging struct {
	host []byte
	used int
}

const stagingBytes = 8 << 20

// stage returns up to n bytes of staging memory that no copy uses.
func (t *Thread) stage(n int) ([]byte, error) {
	s := &t.staging
	n = min(n, len(s.host))
	if s.used+n > len(s.host) {
		if err := t.arrive(); err != nil {
			return nil, err
		}
	}
	part := s.host[s.used : s.used+n : s.used+n]
	s.used += (n + 63) &^ 63
	return part, nil
}

// CopyIn copies to memory that no launch in flight touches, or that After was called
// for. Launches that start later see the bytes; src may change at once.
func (t *Thread) CopyIn(dst Ptr, src []byte) error {
	for len(src) > 0 {
		part, err := t.stage(len(src))
		if err != nil {
			return err
		}
		n := copy(part, src)
		t.unseen = true
		if err := t.drv.CopyIn(dst, part, t.copies); err != nil {
			return err
		}
		src, dst = src[n:], dst+Ptr(n)
	}
	return nil
}

// CopyOut copies from memory likewise, and waits for it.
func (t *Thread) CopyOut(dst []byte, src Ptr) error {
	for len(dst) > 0 {
		part, err := t.stage(len(dst))
		if err != nil {
			return err
		}
		if err := t.drv.CopyOut(part, src, t.copies); err != nil {
			return err
		}
		if err := t.arrive(); err != nil {
			return err
		}
		n := copy(dst, part)
		dst, src = dst[n:], src+Ptr(n)
	}
	return nil
}
