package logger

import (
	"encoding/binary"
	"hash/crc32"
)

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
