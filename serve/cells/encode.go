package cells

import (
	"encoding/binary"
	"math"

	"github.com/pce-engine/pce/serve/oip"
)

// Encode turns numbers into the contents of a tensor, little-endian. FP64 holds every result; other
// datatypes may not, and then it fails.
func Encode(x []float64, d oip.Datatype) ([]byte, error) {
	raw := make([]byte, 0, len(x)*d.Size())
	var err error
	switch d {
	case oip.FP64:
		for _, v := range x {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		}
	case oip.FP32:
		for _, v := range x {
			if math.Abs(v) > math.MaxFloat32 { // infinite, or an error
				if raw, err = oip.AppendFloat(raw, d, v); err != nil {
					return nil, err
				}
				continue
			}
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		}
	default:
		for _, v := range x {
			if raw, err = oip.AppendFloat(raw, d, v); err != nil {
				return nil, err
			}
		}
	}
	return raw, nil
}
