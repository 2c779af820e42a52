package config

import "github.com/spf13/pflag"

// Marks of flags.
const (
	// FlagOnly marks a flag that only the command line may set.
	FlagOnly = "gonbatch_flag_only"
	// Path marks a flag whose value is a path: in a configuration file, it is relative to the
	// file's folder.
	Path = "gonbatch_path"
	// Resumable marks a flag that may change when a run is resumed: it changes neither the run's
	// programs nor their results.
	Resumable = "gonbatch_resumable"
	// ClusterOnly marks a flag without effect on a local run. The command line must not set it for
	// such a run. A configuration file may, because it is for both.
	ClusterOnly = "gonbatch_cluster_only"
)

// Mark marks the named flags. It panics on a name that is not a flag, which is a bug of the caller.
func Mark(fs *pflag.FlagSet, mark string, names ...string) {
	for _, name := range names {
		if err := fs.SetAnnotation(name, mark, nil); err != nil {
			panic(err)
		}
	}
}

// IsMarked reports whether a flag has a mark.
func IsMarked(f *pflag.Flag, mark string) bool {
	_, ok := f.Annotations[mark]
	return ok
}

// GivenWith lists the flags of the command line that have a mark, as the user types them.
func GivenWith(fs *pflag.FlagSet, mark string) (names []string) {
	fs.Visit(func(f *pflag.Flag) {
		if IsMarked(f, mark) {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}
