// The program write writes the list of a program's modules to a file: write PROGRAM VERSION FILE.
package main

import (
	"fmt"
	"os"

	"github.com/corpus-agent/corpus-agent/packaging/sbom"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: write PROGRAM VERSION FILE")
	}
	document, err := sbom.Of(args[0], args[1])
	if err != nil {
		return err
	}
	data, err := document.JSON()
	if err != nil {
		return err
	}
	return os.WriteFile(args[2], data, 0o644)
}
