package grains

// String is the convention as it was written.
func (c Convention) String() string { return c.orStandard().form }

// Example is a hostname that conforms, or "" where the convention is a regular expression.
func (c Convention) Example() string { return c.orStandard().example }
