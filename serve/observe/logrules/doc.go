// Package logrules is a log for tests that holds whoever writes to it to the rules of
// serve/observe: its keys, the words of outcome and cause, and no key without a value.
//
// It never prints. Only tests import it.
package logrules
