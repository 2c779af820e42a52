package logger

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// The hparams plugin of TensorBoard: tensorboard/plugins/hparams/plugin_data.proto.
const (
	hparamsPlugin   = "hparams"
	hparamsStartTag = "_hparams_/session_start_info"
	hparamsEndTag   = "_hparams_/session_end_info"

	pluginDataStart = 3
	pluginDataEnd   = 4

	startHParams = 1
	startTime    = 5

	endStatus     = 1
	endTime       = 2
	statusSuccess = 1
)

// hparamsStart returns the value that shows hyper-parameters in TensorBoard.
func hparamsStart(now time.Time, params map[string]any) []byte {
	var info []byte
	for _, name := range slices.Sorted(maps.Keys(params)) {
		entry := appendBytes(appendBytes(nil, 1, validText(name)), 2, paramValue(params[name]))
		info = appendBytes(info, startHParams, entry)
	}
	info = appendDouble(info, startTime, seconds(now))
	return pluginValue(hparamsStartTag, hparamsPlugin, appendBytes(nil, pluginDataStart, info))
}

// hparamsEnd returns the value that marks the training as ended.
func hparamsEnd(now time.Time) []byte {
	info := appendInt(nil, endStatus, statusSuccess)
	info = appendDouble(info, endTime, seconds(now))
	return pluginValue(hparamsEndTag, hparamsPlugin, appendBytes(nil, pluginDataEnd, info))
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

// The fields of google.protobuf.Value.
const (
	valueNumber = 2
	valueString = 3
	valueBool   = 4
)

// paramValue returns a hyper-parameter as a boolean, a number or a string.
func paramValue(param any) []byte {
	v := reflect.ValueOf(param)
	switch {
	case !v.IsValid():
		return appendBytes(nil, valueString, nil)
	case isText(param):
	case v.Kind() == reflect.Bool && v.Bool():
		return appendInt(nil, valueBool, 1)
	case v.Kind() == reflect.Bool:
		return appendInt(nil, valueBool, 0)
	case v.CanInt():
		return appendDouble(nil, valueNumber, float64(v.Int()))
	case v.CanUint():
		return appendDouble(nil, valueNumber, float64(v.Uint()))
	case v.CanFloat():
		return appendDouble(nil, valueNumber, v.Float())
	}
	return appendBytes(nil, valueString, validText(paramText(param)))
}

// validText returns a text for a message, whose readers refuse anything but UTF-8.
func validText(text string) []byte { return []byte(strings.ToValidUTF8(text, "\uFFFD")) }

// isText reports whether a value has its own text, as a time.Duration has.
func isText(param any) bool {
	_, ok := param.(fmt.Stringer)
	return ok
}

// paramText returns a hyper-parameter's text.
func paramText(param any) string { return fmt.Sprint(param) }
