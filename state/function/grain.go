package function

// Hostname is the name of the host as uname(1) says it.
func (f *Facts) Hostname() string { return f.FirstGrain("nodename", "host") }

// FirstGrain is the first of some grains that is a text, and "" where none is.
func (f *Facts) FirstGrain(names ...string) string {
	for _, name := range names {
		if s, ok := f.Grains.Value(name).(string); ok && s != "" {
			return s
		}
	}
	return ""
}
