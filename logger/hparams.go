package logger

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
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
func hparamsStart(now time.Time, params map[string]any) ([]byte, error) {
	var info []byte
	for _, name := range slices.Sorted(maps.Keys(params)) {
		value, err := proto.Marshal(paramValue(params[name]))
		if err != nil {
			return nil, fmt.Errorf("hyper-parameter %s = %v: %w", name, params[name], err)
		}
		entry := appendBytes(appendBytes(nil, 1, []byte(name)), 2, value)
		info = appendBytes(info, startHParams, entry)
	}
	info = appendDouble(info, startTime, seconds(now))
	return pluginValue(hparamsStartTag, hparamsPlugin, appendBytes(nil, pluginDataStart, info)), nil
}

// hparamsEnd returns the value that marks the training as ended.
func hparamsEnd(now time.Time) []byte {
	info := appendInt(nil, endStatus, statusSuccess)
	info = appendDouble(info, endTime, seconds(now))
	return pluginValue(hparamsEndTag, hparamsPlugin, appendBytes(nil, pluginDataEnd, info))
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

// paramValue returns a hyper-parameter as a boolean, a number or a string.
func paramValue(param any) *structpb.Value {
	switch v := reflect.ValueOf(param); {
	case !v.IsValid():
		return structpb.NewStringValue("")
	case isText(param):
	case v.Kind() == reflect.Bool:
		return structpb.NewBoolValue(v.Bool())
	case v.CanInt():
		return structpb.NewNumberValue(float64(v.Int()))
	case v.CanUint():
		return structpb.NewNumberValue(float64(v.Uint()))
	case v.CanFloat():
		return structpb.NewNumberValue(v.Float())
	}
	return structpb.NewStringValue(paramText(param))
}

// isText reports whether a value has its own text, as a time.Duration has.
func isText(param any) bool {
	_, ok := param.(fmt.Stringer)
	return ok
}

// paramText returns a hyper-parameter's text.
func paramText(param any) string { return fmt.Sprint(param) }
