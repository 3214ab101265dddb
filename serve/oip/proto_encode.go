package oip

import "encoding/binary"

// AppendProto appends a ModelInferResponse, with raw contents, to dst.
func (r *Response) AppendProto(dst []byte) []byte {
	dst = appendText(dst, 1, r.Model)
	dst = appendText(dst, 2, r.Version)
	dst = appendText(dst, 3, r.ID)
	dst = appendParams(dst, 4, r.Params)
	for i := range r.Outputs {
		dst = appendMessage(dst, 5, r.Outputs[i].appendHead)
	}
	for i := range r.Outputs {
		dst = appendBytes(dst, 6, r.Outputs[i].Raw)
	}
	return dst
}

func appendShape(dst []byte, shape []int64) []byte {
	return appendMessage(dst, 3, func(m []byte) []byte {
		for _, d := range shape {
			m = binary.AppendUvarint(m, uint64(d))
		}
		return m
	})
}

// AppendFlag appends ServerLive, ServerReady or ModelReady's response.
func AppendFlag(dst []byte, yes bool) []byte { return appendBool(dst, 1, yes) }

// AppendHealth appends the response of a grpc.health.v1 check.
func AppendHealth(dst []byte, serving bool) []byte {
	status := uint64(2)
	if serving {
		status = 1
	}
	return appendVarint(dst, 1, status)
}

// ServerInfo is the metadata of a server.
type ServerInfo struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// AppendProto appends a ServerMetadataResponse.
func (s *ServerInfo) AppendProto(dst []byte) []byte {
	dst = appendText(dst, 1, s.Name)
	dst = appendText(dst, 2, s.Version)
	for _, e := range s.Extensions {
		dst = appendText(dst, 3, e)
	}
	return dst
}

// TensorInfo describes a tensor; -1 in its shape is a dimension that requests choose.
type TensorInfo struct {
	Name     string   `json:"name"`
	Datatype Datatype `json:"datatype"`
	Shape    []int64  `json:"shape"`
	// Params say more of the tensor, such as that requests may leave it out.
	Params Params `json:"parameters,omitempty"`
}

// ModelInfo is the metadata of a model.
type ModelInfo struct {
	Name     string       `json:"name"`
	Versions []string     `json:"versions"`
	Platform string       `json:"platform"`
	Inputs   []TensorInfo `json:"inputs"`
	Outputs  []TensorInfo `json:"outputs"`
}

// AppendProto appends a ModelMetadataResponse.
func (m *ModelInfo) AppendProto(dst []byte) []byte {
	dst = appendText(dst, 1, m.Name)
	for _, v := range m.Versions {
		dst = appendText(dst, 2, v)
	}
	dst = appendText(dst, 3, m.Platform)
	for i, list := range [][]TensorInfo{m.Inputs, m.Outputs} {
		for _, t := range list {
			dst = appendMessage(dst, 4+i, func(b []byte) []byte {
				return appendParams(appendShape(appendText(appendText(b, 1, t.Name), 2, string(t.Datatype)), t.Shape), 4, t.Params)
			})
		}
	}
	return dst
}

// IndexEntry is a model in the index of the repository.
type IndexEntry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
}

// AppendIndex appends a RepositoryIndexResponse.
func AppendIndex(dst []byte, list []IndexEntry) []byte {
	for _, e := range list {
		dst = appendMessage(dst, 1, func(b []byte) []byte {
			return appendText(appendText(appendText(appendText(b, 1, e.Name), 2, e.Version), 3, e.State), 4, e.Reason)
		})
	}
	return dst
}

// Duration counts events and the nanoseconds that they took.
type Duration struct {
	Count uint64 `json:"count"`
	NS    uint64 `json:"ns"`
}

// Statistics are those of a version of a model. Batches says how many rows were
// computed together.
type Statistics struct {
	Name           string            `json:"name"`
	Version        string            `json:"version"`
	LastInference  uint64            `json:"last_inference"` // milliseconds since 1970
	InferenceCount uint64            `json:"inference_count"`
	ExecutionCount uint64            `json:"execution_count"`
	Inference      InferStatistics   `json:"inference_stats"`
	Batches        []BatchStatistics `json:"batch_stats"`
}

// InferStatistics are sums over requests.
type InferStatistics struct {
	Success Duration `json:"success"`
	Fail    Duration `json:"fail"`
	Queue   Duration `json:"queue"`
	Input   Duration `json:"compute_input"`
	Infer   Duration `json:"compute_infer"`
	Output  Duration `json:"compute_output"`
}

// BatchStatistics are sums over batches of a size.
type BatchStatistics struct {
	Size   uint64   `json:"batch_size"`
	Input  Duration `json:"compute_input"`
	Infer  Duration `json:"compute_infer"`
	Output Duration `json:"compute_output"`
}

// AppendStatistics appends a ModelStatisticsResponse.
func AppendStatistics(dst []byte, list []Statistics) []byte {
	for i := range list {
		s := &list[i]
		dst = appendMessage(dst, 1, func(b []byte) []byte {
			b = appendText(appendText(b, 1, s.Name), 2, s.Version)
			b = appendVarint(appendVarint(appendVarint(b, 3, s.LastInference), 4, s.InferenceCount), 5, s.ExecutionCount)
			b = appendMessage(b, 6, func(m []byte) []byte {
				for k, d := range []Duration{s.Inference.Success, s.Inference.Fail, s.Inference.Queue, s.Inference.Input, s.Inference.Infer, s.Inference.Output} {
					m = d.append(m, k+1)
				}
				return m
			})
			for _, x := range s.Batches {
				b = appendMessage(b, 7, func(m []byte) []byte {
					return x.Output.append(x.Infer.append(x.Input.append(appendVarint(m, 1, x.Size), 2), 3), 4)
				})
			}
			return b
		})
	}
	return dst
}

func (d Duration) append(dst []byte, number int) []byte {
	return appendMessage(dst, number, func(m []byte) []byte { return appendVarint(appendVarint(m, 1, d.Count), 2, d.NS) })
}

// AppendProto appends a ModelInferRequest, with raw contents, to dst, as clients send
// it.
func (r *Request) AppendProto(dst []byte) []byte {
	dst = appendText(dst, 1, r.Model)
	dst = appendText(dst, 2, r.Version)
	dst = appendText(dst, 3, r.ID)
	dst = appendParams(dst, 4, r.Params)
	for i := range r.Inputs {
		dst = appendMessage(dst, 5, r.Inputs[i].appendHead)
	}
	for _, o := range r.Outputs {
		dst = appendMessage(dst, 6, func(m []byte) []byte { return appendParams(appendText(m, 1, o.Name), 2, o.Params) })
	}
	for i := range r.Inputs {
		dst = appendBytes(dst, 7, r.Inputs[i].Raw)
	}
	return dst
}

// appendHead appends a tensor without its contents.
func (t *Tensor) appendHead(m []byte) []byte {
	m = appendText(appendText(m, 1, t.Name), 2, string(t.Datatype))
	return appendParams(appendShape(m, t.Shape), 4, t.Params)
}
