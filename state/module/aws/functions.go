package aws

import "github.com/corpus-agent/corpus-agent/state/function"

// Reading are the functions of templates that ask AWS.
func Reading(c *Cloud) function.Table {
	return function.Table{}
}
