package submit

// plugins returns the folder of the XLA plugin.
func (s JobSpec) plugins() string {
	if s.PluginDir != "" {
		return s.PluginDir
	}
	return s.RunDir.Plugins()
}

// OneDNNStaged is the value of JobSpec.OneDNN for the library in the run directory.
const OneDNNStaged = "staged"

// oneDNN returns the ranks' value of rundir.EnvOneDNN. The run directory may have been moved since
// the job was submitted.
func (s JobSpec) oneDNN() string {
	if s.OneDNN == OneDNNStaged {
		return s.RunDir.OneDNN()
	}
	return s.OneDNN
}
