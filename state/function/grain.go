package function

// hostname is the name of the host as uname(1) says it.
func (f *Facts) hostname() string { return f.firstGrain("nodename", "host") }

// firstGrain is the first of some grains that is a text, and "" where none is.
func (f *Facts) firstGrain(names ...string) string {
	for _, name := range names {
		if s, ok := f.Grains.Value(name).(string); ok && s != "" {
			return s
		}
	}
	return ""
}
