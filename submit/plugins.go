package submit

// Plugins returns the folder of the XLA plugin.
func (s JobSpec) Plugins() string {
	if s.PluginDir != "" {
		return s.PluginDir
	}
	return s.RunDir.Plugins()
}
