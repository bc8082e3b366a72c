// Package blocks counts the KV blocks of one worker: who may be given which.
package blocks
