package logger

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of TensorBoard's messages that are written here: tensorboard/compat/proto/event.proto
// and summary.proto. There is no maintained Go module for them, and these few need no generated
// code.
const (
	eventWallTime    = 1
	eventStep        = 2
	eventFileVersion = 3
	eventSummary     = 5
	eventSessionLog  = 7

	sessionLogStatus = 1
	sessionStart     = 1

	summaryValue = 1

	valueTag         = 1
	valueSimpleValue = 2
	valueImage       = 4
	valueHistogram   = 5
	valueMetadata    = 9

	imageHeight     = 1
	imageWidth      = 2
	imageColorspace = 3
	imageEncoded    = 4

	metadataPluginData   = 1
	pluginDataPluginName = 1
	pluginDataContent    = 2
)

// event returns an Event with a time, a step and one more field.
func event(now time.Time, step int64, field protowire.Number, content []byte) []byte {
	b := appendDouble(nil, eventWallTime, seconds(now))
	b = appendInt(b, eventStep, step)
	return appendBytes(b, field, content)
}

// scalarValue returns a Summary.Value with a number.
func scalarValue(tag string, value float64) []byte {
	b := appendBytes(nil, valueTag, []byte(tag))
	b = protowire.AppendTag(b, valueSimpleValue, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, math.Float32bits(float32(value)))
}

// imageValue returns a Summary.Value with an image of this size, encoded as PNG with this many
// channels.
func imageValue(tag string, width, height, channels int, png []byte) []byte {
	b := appendInt(nil, imageHeight, int64(height))
	b = appendInt(b, imageWidth, int64(width))
	b = appendInt(b, imageColorspace, int64(channels))
	b = appendBytes(b, imageEncoded, png)
	return appendBytes(appendBytes(nil, valueTag, []byte(tag)), valueImage, b)
}

// histogramValue returns a Summary.Value with a HistogramProto.
func histogramValue(tag string, h histogram) []byte {
	var b []byte
	for i, x := range []float64{h.min, h.max, h.count, h.sum, h.sumSquares} {
		b = appendDouble(b, protowire.Number(i+1), x)
	}
	b = appendDoubles(b, 6, h.limits)
	b = appendDoubles(b, 7, h.counts)
	return appendBytes(appendBytes(nil, valueTag, []byte(tag)), valueHistogram, b)
}

// pluginValue returns a Summary.Value whose content belongs to one of TensorBoard's plugins.
func pluginValue(tag, plugin string, content []byte) []byte {
	data := appendBytes(nil, pluginDataPluginName, []byte(plugin))
	data = appendBytes(data, pluginDataContent, content)
	metadata := appendBytes(nil, metadataPluginData, data)
	return appendBytes(appendBytes(nil, valueTag, []byte(tag)), valueMetadata, metadata)
}

func appendBytes(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}

func appendInt(b []byte, field protowire.Number, x int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(x))
}

func appendDouble(b []byte, field protowire.Number, x float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(x))
}

func appendDoubles(b []byte, field protowire.Number, xs []float64) []byte {
	var packed []byte
	for _, x := range xs {
		packed = protowire.AppendFixed64(packed, math.Float64bits(x))
	}
	return appendBytes(b, field, packed)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC returns the checksum of TFRecord files: CRC-32C, rotated and offset so that the
// checksum of data that contains checksums is still useful.
func maskedCRC(data []byte) uint32 {
	const maskDelta = 0xa282ead8
	crc := crc32.Checksum(data, castagnoli)
	return (crc>>15 | crc<<17) + maskDelta
}

// appendRecord appends data as a TFRecord: its length, the length's checksum, the data, the data's
// checksum; little endian.
func appendRecord(b, data []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b[len(b)-8:]))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, maskedCRC(data))
}
