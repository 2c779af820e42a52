package pjrt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"gonbatch/distributed/stablehlo"

	"google.golang.org/protobuf/encoding/protowire"
)

// native is the lowering to XLA's own collectives: each process compiles the same program, with a
// replica on the device of each process, and runs its own replica.
type native struct{ processes *processes }

// body returns XLA's collective.
func (native) body(p parameters) []*stablehlo.Op {
	var ops []*stablehlo.Op
	x := p.x
	if !p.first {
		ops = following(p)
		x.Name = "%ready"
	}
	result := stablehlo.Value{Name: "%result", Type: p.results[0]}
	collective := stablehlo.New(p.op.native(), "{ "+p.attributes()+p.replicaGroups()+" }", []stablehlo.Value{x}, result)
	if p.op.reduces() {
		scalar := scalarOf(p.x.Type)
		a, b, sum := stablehlo.Value{Name: "%a", Type: scalar}, stablehlo.Value{Name: "%b", Type: scalar}, stablehlo.Value{Name: "%sum", Type: scalar}
		region := &stablehlo.Region{Name: "reduction", Parameters: []stablehlo.Value{a, b}}
		region.Ops = []*stablehlo.Op{stablehlo.New("stablehlo."+reducers[p.reduction], "", []stablehlo.Value{a, b}, sum), stablehlo.Return(sum)}
		collective.Regions = []*stablehlo.Region{region}
	}
	return append(ops, collective, stablehlo.Return(result))
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
	if o == broadcast {
		return "stablehlo.collective_broadcast"
	}
	return "stablehlo." + opNames[o]
}

// reducers are the operations of reductions.
var reducers = []string{Sum: "add", Min: "minimum", Max: "maximum"}

// attributes returns the first of the operation's attributes. The placeholders of gathers, scatters
// and all-to-alls have vectors.
func (p parameters) attributes() string {
	switch p.op {
	case allGather:
		return "all_gather_dim = 0 : i64, "
	case allToAll:
		return fmt.Sprintf("split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = %d : i64, ", p.groups.size(p.ranks))
	case reduceScatter:
		return "scatter_dimension = 0 : i64, "
	}
	return ""
}

// following makes x depend on the previous collective of the program, as %ready. All ranks must
// reach their collectives in the same order, although each rank tunes and schedules its program
// itself. So the dependency must be one that XLA can't remove: it removes barriers before it
// schedules, but it does not know that a float either equals itself or doesn't.
func following(p parameters) []*stablehlo.Op {
	const flag, integer = "tensor<i1>", "tensor<i32>"
	var ops []*stablehlo.Op
	add := func(name, of, attributes, result string, operands ...stablehlo.Value) stablehlo.Value {
		v := stablehlo.Value{Name: name, Type: result}
		ops = append(ops, stablehlo.New("stablehlo."+of, attributes, operands, v))
		return v
	}
	compare := func(name, direction string, x stablehlo.Value) stablehlo.Value {
		return add(name, "compare", "{ compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction "+direction+"> }", flag, x, x)
	}
	done := add("%done", "convert", "", "tensor<f32>", p.after)
	always := add("%always", "or", "", flag, compare("%number", "EQ", done), compare("%none", "NE", done))
	never := stablehlo.Value{Name: "%never", Type: integer}
	ops = append(ops, stablehlo.Constant(never, "0"))
	zero := add("%zero", "convert", "", scalarOf(p.x.Type), never)
	zeros := add("%zeros", "broadcast_in_dim", "{ broadcast_dimensions = array<i64> }", p.x.Type, zero)
	add("%ready", "select", "", p.x.Type, always, p.x, zeros)
	return ops
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
	switch head := headOf(program); {
	case !hasCollectives:
		return alone, nil
	case numberIn(head, "num_partitions")*numberIn(head, "num_replicas") > 1:
		return nil, errors.New("a program for several devices of one process can't have collectives over the ranks: a rank drives one device")
	}
	return replicate(alone, devices), nil
}

func (native) overlaps() bool { return true }

// replicate makes a program compile for these devices, which all run it. In the binary form of
// options, later fields replace or complete earlier ones.
func replicate(options []byte, devices []int64) []byte {
	build := appendVarint(nil, fieldNumReplicas, uint64(len(devices)))
	build = appendBytes(build, fieldDeviceAssignment, assignment(devices))
	options = appendBytes(options, fieldBuildOptions, build)
	return appendVarint(options, fieldPortable, 0)
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

// The element types of collectives, by their names in programs.
var elementTypes = map[string]int{"i32": 4, "i64": 5, "ui8": 6, "f16": 10, "f32": 11, "f64": 12, "bf16": 16}

// collectivesOf lists the collectives of a program, whatever its lowering.
func collectivesOf(program []byte) (all []collective) {
	if !bytes.Contains(program, []byte("@"+namePrefix)) {
		return nil
	}
	m, err := stablehlo.Parse(string(program))
	if err != nil {
		return nil // It would not have been compiled.
	}
	for _, f := range m.Functions {
		p, ok := placeholderOf(f.Name)
		if !ok {
			continue
		}
		_, element, _ := stablehlo.Tensor(f.Parameters[0].Type)
		count := stablehlo.Size(f.Parameters[0].Type)
		if p.op == reduceScatter || p.op == allToAll || p.part == inPlace {
			count /= p.groups.size(p.ranks)
		}
		all = append(all, collective{p.op, elementTypes[element], count, p.detail()})
	}
	return all
}
