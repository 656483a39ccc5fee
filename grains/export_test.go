package grains

// String returns the convention as in the configuration.
func (c Convention) String() string { return c.orStandard().form }

// Example returns a hostname that follows the convention, or "" if the convention is a regular expression.
func (c Convention) Example() string { return c.orStandard().example }
