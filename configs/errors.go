package configs

import "errors"

// ErrConfig means that a config file, variable or setting is not usable.
var ErrConfig = errors.New("configs")
