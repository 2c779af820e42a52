// Package config sets the flags that the command line left out, through viper: from the environment
// (SUBMIT_NODES for --nodes), from submit.yaml in the project, and from the user's own submit.yaml,
// in this order. A key is a flag's long name; an unknown key or a value of the wrong type is an
// error that names the place.
//
//	cfg, err := config.Load(cmd.Flags(), config.Places{Start: ".", UserDir: dir, Environ: os.Environ()})
//	for _, s := range cfg.Settings {
//		fmt.Printf("%s: %s  # %s\n", s.Key, s.Value, s.Origin)
//	}
//
// A submit.yaml looks like this. A list replaces a list from a place with lower priority; they are
// not merged.
//
//	partition: gpu
//	time: 4:00:00
//	module: [openmpi/4.1]
//	env: [OMP_NUM_THREADS=8]
package config
