package function

// Hostname returns the name of the host as in uname(1).
func (f *Facts) Hostname() string { return f.FirstGrain("nodename", "host") }

// FirstGrain returns the first of the named grains that is a string, or "".
func (f *Facts) FirstGrain(names ...string) string {
	for _, name := range names {
		if s, ok := f.Grains.Value(name).(string); ok && s != "" {
			return s
		}
	}
	return ""
}
