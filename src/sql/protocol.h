/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a helper process of a database target and the daemon say to each other over a socket pair.
 * Included by both sides; one struct is one datagram (SOCK_SEQPACKET), so nothing is ever half
 * read. Never believed: the daemon checks size, type, text ends and numbers of each before it looks
 * at it.
 */
#ifndef IOSTALL_SQL_PROTOCOL_H
#define IOSTALL_SQL_PROTOCOL_H

#include <stdint.h>

#define SQL_NAME_SIZE 64
#define SQL_STATE_SIZE 64
#define SQL_ERROR_SIZE 256
#define SQL_PATH_SIZE 256
/* The most that sql.text_bytes allows, and the terminating NUL. */
#define SQL_TEXT_SIZE 4096
/* Such an error of an answer begins so: the session is kept, but the server is silent. */
#define SQL_ERROR_SILENT "the server has not answered"
/* Active sessions of a target in one answer; those beyond are counted. */
#define SQL_SESSIONS_MAX 256

enum sql_type {
	SQL_TYPE_MARIADB = 1,
	SQL_TYPE_MYSQL,
	SQL_TYPE_POSTGRESQL,
};

enum sql_text_mode {
	SQL_TEXT_REDACTED = 1, /* each literal is a ? */
	SQL_TEXT_FULL,
	SQL_TEXT_OFF, /* none; text_bytes of the session is still said */
};

enum sql_frame_type {
	SQL_FRAME_SETUP = 1, /* daemon -> helper: the target; once, before all else */
	SQL_FRAME_ASK,	     /* daemon -> helper: one snapshot */
	SQL_FRAME_SERVER,    /* helper -> daemon: connected; at the start and per question once */
	SQL_FRAME_SESSION,   /* one active session of the answer */
	SQL_FRAME_END,	     /* the answer is complete, or why there is none */
	SQL_FRAME_TYPE_COUNT,
};

struct sql_frame {
	uint32_t type;
	uint32_t size; /* of the whole datagram */
	uint64_t ask;  /* number of the question that this answers; 0 in SQL_FRAME_SERVER */
};

/* Texts are terminated; "" is the default of the client library or of the kind of server. */
struct sql_frame_setup {
	struct sql_frame frame;
	uint32_t type;		    /* enum sql_type */
	uint32_t text_mode;	    /* enum sql_text_mode */
	uint32_t text_bytes;	    /* a statement is cut there; below SQL_TEXT_SIZE */
	uint32_t port;		    /* with host; 0: the usual one */
	char name[SQL_NAME_SIZE];   /* of the target, for log lines */
	char socket[SQL_PATH_SIZE]; /* not together with host */
	char host[SQL_PATH_SIZE];
	char user[SQL_NAME_SIZE];	   /* of the database: "iostall" */
	char database[SQL_NAME_SIZE];	   /* PostgreSQL's sessions need one: "postgres" */
	char password_file[SQL_PATH_SIZE]; /* its first line; opened while still root */
	/* MariaDB: [client] and [iostall] of it; PostgreSQL: [iostall]; read as run_as. */
	char option_file[SQL_PATH_SIZE];
	char run_as[SQL_NAME_SIZE]; /* user of the system: "iostall" */
};

struct sql_frame_server {
	struct sql_frame frame;
	int32_t server_pid;	     /* of the main process, by SO_PEERCRED; 0: not known */
	uint32_t can_see_others;     /* 0: the account sees only its own sessions */
	uint32_t has_tid;	     /* 0: the server does not say which thread a session runs on */
	char version[SQL_NAME_SIZE]; /* "10.11.19-MariaDB" */
	char account[SQL_NAME_SIZE]; /* "iostall@localhost" */
	char missing[SQL_ERROR_SIZE]; /* the statement that grants what is missing; "" */
};

struct sql_frame_session {
	struct sql_frame frame;
	uint64_t connection_id;
	uint64_t query_id;   /* 0: the server has none */
	int32_t tid;	     /* thread or backend; 0: see no_tid */
	uint32_t background; /* a thread of the server itself, no client's */
	uint64_t elapsed_ns; /* of the statement; 0: not known */
	uint32_t idle;	     /* has a transaction open, but runs no statement */
	int32_t leader_pid;  /* the backend that this parallel or I/O worker serves; 0: none */
	char no_tid[SQL_NAME_SIZE]; /* why tid is 0: "thread pool" ...; "" */
	char user[SQL_NAME_SIZE];   /* "app@localhost" */
	char database[SQL_NAME_SIZE];
	char command[SQL_NAME_SIZE]; /* MariaDB's COMMAND, PostgreSQL's state */
	char state[SQL_STATE_SIZE];  /* MariaDB's STATE, PostgreSQL's wait event */
	uint32_t text_bytes;	     /* of the statement before it was cut */
	char text[SQL_TEXT_SIZE]; /* as sql.text asks: full, redacted or empty; the last, sent cut
				   */
};

struct sql_frame_end {
	struct sql_frame frame;
	uint32_t sessions_left_out; /* active ones beyond SQL_SESSIONS_MAX */
	uint32_t sessions_idle;
	uint64_t server_ns;	      /* how long the server took to answer */
	char error[SQL_ERROR_SIZE];   /* "": the answer is complete */
	char missing[SQL_ERROR_SIZE]; /* the statement that would mend a refused login; "" */
	uint32_t renew; /* a new helper may have more luck: it opens files as root, this one cannot */
};

#endif
