//go:build amd64 && !linux

package kernel

import "errors"

func tilePermission() error { return errors.New("asking for them is known for Linux alone") }
