package safetensors

// Size returns the size of the whole file in bytes.
func (p *Plan) Size() int64 { return int64(len(p.header)) + p.size }
