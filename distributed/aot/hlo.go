package aot

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// Collective is one that a scheduled program has.
type Collective struct {
	// Op is XLA's name: "all-reduce", or "all-reduce-start" where the program continues meanwhile.
	Op string
	// Bytes is the size of the result or, if the program continues meanwhile, of what XLA keeps.
	Bytes int64
}

// The numbers of fields of XLA's HloModuleProtoWithConfig and of the messages in it.
const (
	fieldModule       = 1
	fieldComputations = 3
	fieldInstructions = 2
	fieldOpcode       = 2
	fieldShape        = 3
	fieldElementType  = 2
	fieldDimensions   = 3
	fieldTupleShapes  = 4
)

// elementSizes are those of xla::PrimitiveType, in bytes.
var elementSizes = map[uint64]int64{1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 2, 8: 4, 9: 8, 10: 2, 11: 4, 12: 8, 15: 8, 16: 2, 18: 16}

var errMalformed = errors.New("it isn't an XLA module")

// collectivesOf lists the collectives of a scheduled program.
func collectivesOf(module []byte) (all []Collective, err error) {
	computations := 0
	err = each(module, fieldModule, func(module []byte) error {
		return each(module, fieldComputations, func(computation []byte) error {
			computations++
			return each(computation, fieldInstructions, func(instruction []byte) error {
				c, err := collectiveOf(instruction)
				if c.Op != "" {
					all = append(all, c)
				}
				return err
			})
		})
	})
	if err == nil && computations == 0 {
		err = errMalformed
	}
	return all, err
}

// starts are the instructions that begin a collective. Ends, such as all-reduce-done, don't count.
var starts = []string{"all-reduce", "all-gather", "reduce-scatter", "collective-permute", "all-to-all", "collective-broadcast", "ragged-all-to-all"}

// collectiveOf is the collective that an instruction is; the zero Collective is none.
func collectiveOf(instruction []byte) (c Collective, err error) {
	op := ""
	err = each(instruction, fieldOpcode, func(text []byte) error { op = string(text); return nil })
	for _, name := range starts {
		if op == name || op == name+"-start" {
			c.Op = op
		}
	}
	if c.Op == "" || err != nil {
		return Collective{}, err
	}
	err = each(instruction, fieldShape, func(shape []byte) error { c.Bytes, err = sizeOf(shape); return err })
	return c, err
}

// sizeOf is the size of a value of a shape, in bytes.
func sizeOf(shape []byte) (size int64, err error) {
	elements, element := int64(1), uint64(0)
	err = eachField(shape, func(number protowire.Number, kind protowire.Type, value []byte) error {
		switch number {
		case fieldTupleShapes:
			part, err := sizeOf(value)
			size += part
			return err
		case fieldElementType:
			element, _ = protowire.ConsumeVarint(value)
		case fieldDimensions:
			for len(value) > 0 {
				dimension, n := protowire.ConsumeVarint(value)
				if n < 0 {
					return errMalformed
				}
				elements *= int64(dimension)
				value = value[n:]
			}
		}
		return nil
	})
	return size + elements*elementSizes[element], err
}

// each calls f with the messages or strings in the fields of that number.
func each(message []byte, wanted protowire.Number, f func([]byte) error) error {
	return eachField(message, func(number protowire.Number, kind protowire.Type, value []byte) error {
		if number != wanted || kind != protowire.BytesType {
			return nil
		}
		return f(value)
	})
}

// eachField calls f with each field: the content of a message or text, or the encoded number.
func eachField(message []byte, f func(protowire.Number, protowire.Type, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return errMalformed
		}
		value := message[:n]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message)
		}
		if err := f(number, kind, value); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

// Reduced is the number of bytes that each GPU puts into all-reduces. A reduce-scatter and an
// all-gather send half as much as an all-reduce of as many bytes, so they count half.
func (c Compiled) Reduced() (bytes int64) {
	ranks := int64(c.Ranks)
	for _, one := range c.Collectives {
		switch one.Op {
		case "all-reduce", "all-reduce-start":
			bytes += one.Bytes
		case "reduce-scatter": // The result is a rank's part.
			bytes += one.Bytes * ranks / 2
		case "all-gather":
			bytes += one.Bytes / 2
		case "all-gather-start": // It keeps a rank's part and the result.
			bytes += one.Bytes * ranks / (ranks + 1) / 2
		}
	}
	return bytes
}
