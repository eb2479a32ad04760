/** How the pages write times: in the reader's time zone, from 00:00 to 23:59. */

import { timeLocale } from "./texts.js";

const MAX_DATE_MS = 8.64e15; // a log may have a time that a Date cannot hold
const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const DAY = { year: "numeric", month: "short", day: "numeric" };

/** @param {Record<string, string>} how */
const format = (how) => new Intl.DateTimeFormat(timeLocale(), how);
const minute = format(TIME);
const time = format({ ...TIME, second: "2-digit" });
const dayAndTime = format({ ...DAY, ...TIME });

/** @param {number} at ms since 1970 */
const dateOf = (at) => new Date(Math.min(Math.max(at, -MAX_DATE_MS), MAX_DATE_MS));

/**
 * The time of day, in sentences.
 *
 * @param {number} at ms since 1970
 */
export const minuteOf = (at) => minute.format(dateOf(at));

/**
 * The time of day with seconds, for things whose order matters.
 *
 * @param {number} at ms since 1970
 */
export const timeOf = (at) => time.format(dateOf(at));

/**
 * The day and the time of day.
 *
 * @param {number} at ms since 1970
 */
export const dayAndTimeOf = (at) => dayAndTime.format(dateOf(at));

/**
 * The same for programs: the attribute `datetime` of `<time>`.
 *
 * @param {number} at ms since 1970
 */
export const machineTimeOf = (at) => dateOf(at).toISOString();
