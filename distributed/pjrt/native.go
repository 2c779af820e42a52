package pjrt

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// native is the lowering to XLA's own collectives: each process compiles the same program, with a
// replica on the device of each process, and runs its own replica.
type native struct{ processes *processes }

// body returns XLA's collective.
func (native) body(p parameters) string {
	var b strings.Builder
	x := p.x
	if !strings.HasSuffix(p.name, "_0") {
		b.WriteString(following(p))
		x = "%ready"
	}
	fmt.Fprintf(&b, `
    %%result = %s(%s) %s%s} : (%s) -> %s
    return %%result : %s
  }`, p.op.native(), x, p.attributes(), p.replicaGroups(), p.xType, p.resultType, p.resultType)
	return b.String()
}

// replicaGroups returns the attribute that names the ranks of each group. XLA's broadcast begins at
// the first of a group.
func (p parameters) replicaGroups() string {
	groups := p.groups.orAll(p.ranks)
	rows := make([]string, len(groups))
	for i, members := range groups {
		row := slices.Clone(members)
		if p.op == broadcast {
			row[0], row[p.root] = row[p.root], row[0]
		}
		rows[i] = "[" + strings.Join(texts(row), ", ") + "]"
	}
	return fmt.Sprintf("replica_groups = dense<[%s]> : tensor<%dx%dxi64>", strings.Join(rows, ", "), len(rows), len(groups[0]))
}

// native returns the name of XLA's operation.
func (o op) native() string {
	return map[op]string{
		allReduce: `"stablehlo.all_reduce"`, broadcast: `"stablehlo.collective_broadcast"`, allGather: `"stablehlo.all_gather"`,
		reduceScatter: `"stablehlo.reduce_scatter"`, allToAll: `"stablehlo.all_to_all"`,
	}[o]
}

// reducers are the operations of reductions.
var reducers = []string{Sum: "add", Min: "minimum", Max: "maximum"}

// attributes returns the beginning of the operation's attributes, after the reduction if it has
// one. The placeholders of gathers, scatters and all-to-alls have vectors.
func (p parameters) attributes() string {
	reducer := fmt.Sprintf(`({
      ^bb0(%%a: %[1]s, %%b: %[1]s):
        %%sum = stablehlo.%[2]s %%a, %%b : %[1]s
        stablehlo.return %%sum : %[1]s
    }) {`, scalarOf(p.xType), reducers[p.reduction])
	switch p.op {
	case broadcast:
		return "{"
	case allGather:
		return "{all_gather_dim = 0 : i64, "
	case allToAll:
		return fmt.Sprintf("{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = %d : i64, ", p.groups.size(p.ranks))
	case reduceScatter:
		return reducer + "scatter_dimension = 0 : i64, "
	}
	return reducer
}

// following makes x depend on the previous collective of the program, as %ready. All ranks must
// reach their collectives in the same order, although each rank tunes and schedules its program
// itself. So the dependency must be one that XLA can't remove: it removes barriers before it
// schedules, but it does not know that a float either equals itself or doesn't.
func following(p parameters) string {
	return fmt.Sprintf(`
    %%done = stablehlo.convert %[2]s : (%[4]s) -> tensor<f32>
    %%number = stablehlo.compare EQ, %%done, %%done, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %%none = stablehlo.compare NE, %%done, %%done, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %%always = stablehlo.or %%number, %%none : tensor<i1>
    %%never = stablehlo.constant dense<0> : tensor<i32>
    %%zero = stablehlo.convert %%never : (tensor<i32>) -> %[5]s
    %%zeros = stablehlo.broadcast_in_dim %%zero, dims = [] : (%[5]s) -> %[3]s
    %%ready = stablehlo.select %%always, %[1]s, %%zeros : tensor<i1>, %[3]s`, p.x, p.after, p.xType, p.afterType, scalarOf(p.xType))
}

// scalarOf returns the type of a tensor's elements.
func scalarOf(tensor string) string {
	return "tensor<" + tensor[strings.LastIndexAny(tensor, "x<")+1:]
}

// The numbers of fields of XLA's CompileOptionsProto, and of its messages.
const (
	fieldBuildOptions = 3
	fieldPortable     = 4
	fieldOverrides    = 7

	fieldNumReplicas      = 4
	fieldNumPartitions    = 5
	fieldDeviceAssignment = 9

	fieldReplicaCount     = 1
	fieldComputationCount = 2
	fieldComputation      = 3
	fieldReplicaDevices   = 1

	fieldMapKey   = 1
	fieldMapValue = 2

	fieldText = 1
	fieldBool = 2
	fieldInt  = 3
)

// shardAutotuning is the XLA option that makes each process tune a part of a program. A process
// that compiles a program that the others don't would wait a day for them.
const shardAutotuning = "xla_gpu_shard_autotuning"

// options makes a program with collectives compile for the devices of all ranks.
func (n native) options(client unsafe.Pointer, program, given []byte) ([]byte, error) {
	devices, hasCollectives := n.processes.devices(client), len(collectivesOf(program)) > 0
	switch {
	case devices == nil && hasCollectives:
		return nil, errors.New("this backend has no other ranks: use World.Backend()")
	case devices == nil:
		return given, nil
	}
	alone := slices.Concat(given, Flag(shardAutotuning, false))
	if !hasCollectives {
		return alone, nil
	}
	return replicate(alone, devices)
}

func (native) overlaps() bool { return true }

// replicate makes a program compile for these devices, which all run it. In the binary form of
// options, later fields replace or complete earlier ones.
func replicate(options []byte, devices []int64) ([]byte, error) {
	if !isPortable(options) {
		return nil, errors.New("a program for several devices of one process can't have collectives over the ranks: a rank drives one device")
	}
	build := appendVarint(nil, fieldNumReplicas, uint64(len(devices)))
	build = appendBytes(build, fieldDeviceAssignment, assignment(devices))
	options = appendBytes(options, fieldBuildOptions, build)
	return appendVarint(options, fieldPortable, 0), nil
}

// assignment puts one replica on each of the devices, in this order.
func assignment(devices []int64) []byte {
	var ids []byte
	for _, id := range devices {
		ids = protowire.AppendVarint(ids, uint64(id))
	}
	message := appendVarint(nil, fieldReplicaCount, uint64(len(devices)))
	message = appendVarint(message, fieldComputationCount, 1)
	return appendBytes(message, fieldComputation, appendBytes(nil, fieldReplicaDevices, ids))
}

// Flag sets a flag of XLA for one compilation: it is part of the options. The value is a bool, an
// int64 or a string.
func Flag(name string, value any) []byte {
	var encoded []byte
	switch value := value.(type) {
	case string:
		encoded = appendBytes(nil, fieldText, []byte(value))
	case bool:
		encoded = appendVarint(nil, fieldBool, protowire.EncodeBool(value))
	case int64:
		encoded = appendVarint(nil, fieldInt, uint64(value))
	default:
		panic(fmt.Sprintf("pjrt: the flag %s of type %T", name, value))
	}
	entry := appendBytes(nil, fieldMapKey, []byte(name))
	return appendBytes(nil, fieldOverrides, appendBytes(entry, fieldMapValue, encoded))
}

// isPortable reports whether a program is for any one device.
func isPortable(options []byte) bool { return lastVarint(options, fieldPortable) != 0 }

// partitions returns for how many devices of a process a program is divided.
func partitions(options []byte) (n uint64) {
	eachField(options, func(number protowire.Number, kind protowire.Type, value []byte) {
		if number != fieldBuildOptions || kind != protowire.BytesType {
			return
		}
		build, _ := protowire.ConsumeBytes(value)
		n = max(n, lastVarint(build, fieldNumPartitions))
	})
	return n
}

// lastVarint returns the last value of a field of a message; 0 if it has none.
func lastVarint(message []byte, wanted protowire.Number) (last uint64) {
	eachField(message, func(number protowire.Number, kind protowire.Type, value []byte) {
		if number == wanted && kind == protowire.VarintType {
			last, _ = protowire.ConsumeVarint(value)
		}
	})
	return last
}

// eachField calls f with the encoded values of a message's fields, up to one that isn't whole.
func eachField(message []byte, f func(number protowire.Number, kind protowire.Type, value []byte)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return
		}
		f(number, kind, message[:n])
		message = message[n:]
	}
}

func appendVarint(b []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

// collective is one in a program: what it does, the type of its elements, with XLA's number, and
// the count that a transport would get.
type collective struct {
	op           op
	dtype, count int
	detail       int
}

// definition matches the beginning of a function that has become a collective, with the shape and
// type of its value.
var definition = regexp.MustCompile(`func\.func [^@\n]*@(` + targetPrefix + `\w*)\(%[\w.]+: tensor<((?:\d+x)*)(\w+)>`)

// The element types of collectives, by their names in programs.
var elementTypes = map[string]int{"i32": 4, "i64": 5, "ui8": 6, "f16": 10, "f32": 11, "f64": 12, "bf16": 16}

// collectivesOf lists the collectives of a program, whatever its lowering.
func collectivesOf(program []byte) []collective {
	var all []collective
	for _, m := range definition.FindAllSubmatch(program, -1) {
		count := 1
		for _, size := range strings.Split(strings.TrimSuffix(string(m[2]), "x"), "x") {
			if n, err := strconv.Atoi(size); err == nil {
				count *= n
			}
		}
		d, ranks, _ := parse(string(m[1]))
		if d.op == reduceScatter || d.op == allToAll || d.part == inPlace {
			count /= d.groups.size(ranks)
		}
		all = append(all, collective{d.op, elementTypes[string(m[3])], count, d.detail()})
	}
	return all
}
