package cuda

// Thread is a thread in which the driver's context is current, where programs make their
// calls: memory and copies, code, and graphs of launches. Device.Do lends it to a function;
// its methods may be called from there and nowhere else.
type Thread struct {
	name string
	drv  Driver
	card Card
	order
	staging staging
	code    codeCache
	cells   []cell // that no graph has
	meter   meter
}

func (t *Thread) open(name string, open func() (Driver, error)) (err error) {
	t.name = name
	if t.drv, err = open(); err != nil {
		return err
	}
	t.card = t.drv.Card()
	if err = t.order.open(t.drv); err != nil {
		return t.fail(err)
	}
	if err = t.staging.open(t.drv); err != nil {
		return t.fail(err)
	}
	return nil
}

// fail closes a driver that could not be made ready.
func (t *Thread) fail(err error) error {
	_ = t.drv.Close() // the first error says what is wrong
	return err
}

// Card describes the GPU.
func (t *Thread) Card() Card { return t.card }
