package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// VersionCommand returns a command that prints the version of the program, as its flag --version does.
func VersionCommand(streams IO) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON, _ := c.Flags().GetBool("json"); asJSON {
				return streams.JSON(map[string]string{"version": Version})
			}
			_, err := fmt.Fprintln(streams.Out, c.Root().Name(), Version)
			return err
		},
	}
}
