package submit

// Plugins is the folder in which the programs find the XLA plugin.
func (s JobSpec) Plugins() string {
	if s.PluginDir != "" {
		return s.PluginDir
	}
	return s.RunDir.Plugins()
}
